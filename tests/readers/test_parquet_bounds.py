"""Parquet: what is given out and held stays inside the share, whatever the file hides."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import KIB, MIB
from penstock.readers.reading import BlockStream
from penstock.runtime.budget import Share
from tests.readers.samples import flat, open_path, scan_path, take

LONG = "a long text " * 1700


def _largest_batch_bytes(reader: BlockStream, share: Share) -> int:
    """The largest batch, having checked that each one and all that Arrow has allocated fit the share."""
    before_bytes, largest_bytes = pa.total_allocated_bytes(), 0
    for batch in reader:
        assert batch.nbytes <= share.held_bytes <= share.limit_bytes
        assert pa.total_allocated_bytes() - before_bytes <= share.held_bytes
        largest_bytes = max(largest_bytes, batch.nbytes)
    return largest_bytes


def _open(path: Path, share: Share) -> BlockStream:
    return BlockStream(scan_path(path), share)


def _growing(num_short: int, num_long: int) -> pa.Array:
    words = pa.array(["short", LONG, None])
    numbers = np.repeat([0, 1, 2], [num_short, num_long, 3]).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), words).cast(pa.string())


def test_a_text_that_grows_behind_the_first_rows_stays_inside_the_share(tmp_path: Path) -> None:
    """A small file: short rows, then rows of 20 kB that stand once in a dictionary."""
    table = pa.table({"number": range(42_003), "text": _growing(40_000, 2_000)})
    pq.write_table(table, tmp_path / "a.parquet")
    share = Share("reading", 8 * MIB)

    assert (tmp_path / "a.parquet").stat().st_size < MIB
    assert table.nbytes > 4 * share.limit_bytes
    assert _largest_batch_bytes(_open(tmp_path, share), share) <= share.limit_bytes // 6
    assert pa.Table.from_batches(_open(tmp_path, share)).drop_columns("__row__").equals(table)


@pytest.mark.parametrize("kind", ["list", "list of lists", "map", "fixed list"])
def test_texts_in_lists_and_maps_stay_inside_the_share(tmp_path: Path, kind: str) -> None:
    texts = _growing(4_000, 1_997)
    offsets = pa.array(range(0, 6_001, 10), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, texts)
    nested = {
        "list": lists,
        "list of lists": pa.ListArray.from_arrays(pa.array(range(0, 601, 2), pa.int32()), lists),
        "map": pa.MapArray.from_arrays(offsets, pa.array(["key"] * 6_000), texts),
        "fixed list": pa.FixedSizeListArray.from_arrays(texts, 10),
    }[kind]
    table = pa.table({"nested": nested})
    pq.write_table(table, tmp_path / "a.parquet")
    share = Share("reading", 8 * MIB)

    assert table.nbytes > 4 * share.limit_bytes
    assert _largest_batch_bytes(_open(tmp_path, share), share) <= share.limit_bytes // 4
    given = pa.Table.from_batches(_open(tmp_path, share)).column("nested")
    assert given.to_pylist() == nested.to_pylist()


@pytest.mark.parametrize("use_dictionary", [True, False])
def test_lists_that_grow_behind_the_first_rows_are_decoded_in_smaller_batches(
    tmp_path: Path, use_dictionary: bool
) -> None:
    """The footer tells only how many values there are in all: here nearly all are in the last rows."""
    lengths = np.repeat([1, 20_000], [100_000, 100])
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.arange(offsets[-1]) % 100))
    pq.write_table(pa.table({"list": lists}), tmp_path / "a.parquet", use_dictionary=use_dictionary)
    share = Share("reading", 8 * MIB)

    assert lists.nbytes > share.limit_bytes
    assert _largest_batch_bytes(_open(tmp_path, share), share) <= share.limit_bytes // 2
    assert pa.Table.from_batches(_open(tmp_path, share)).column("list").combine_chunks().equals(lists)


@pytest.mark.parametrize("share_bytes", [24 * MIB, 256 * MIB])
def test_a_long_text_in_a_dictionary_that_grew_full(tmp_path: Path, share_bytes: int) -> None:
    """Behind many texts of their own, which stand as they are, nothing tells of the long ones."""
    words = pa.array([f"text number {number}" for number in range(60_000)] + [LONG])
    numbers = np.concatenate([np.arange(2_000), np.full(10_000, 60_000), np.arange(60_000)]).astype(np.int32)
    texts = pa.DictionaryArray.from_arrays(pa.array(numbers), words).cast(pa.large_string())
    pq.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    share = Share("reading", share_bytes)
    num_rows = 0
    before_bytes = pa.total_allocated_bytes()
    for batch in _open(tmp_path, share):
        assert batch.nbytes <= share.held_bytes <= share.limit_bytes
        assert pa.total_allocated_bytes() - before_bytes <= share.held_bytes
        assert batch.column("text").equals(texts.slice(num_rows, batch.num_rows))
        num_rows += batch.num_rows

    assert num_rows == len(texts)


def _write_mixed_vectors(path: Path) -> pa.Array:
    """Texts of 256 numbers: the dictionary overflows, and the writer looks at the size of a page every 1,024 rows."""
    generator = np.random.default_rng(0)
    words = pa.array(["|".join(f"{number:.6f}" for number in row) for row in generator.random((1_000, 256))])
    numbers = pa.array(generator.integers(0, 1_000, 20_000).astype(np.int32))
    texts = pa.DictionaryArray.from_arrays(numbers, words).cast(pa.string())
    table = pa.table({"vector": texts, "label": generator.integers(0, 2, 20_000).astype(np.float32)})
    pq.write_table(table, path, row_group_size=10_000)
    return texts


def test_long_texts_behind_a_full_dictionary_are_read_with_any_share_that_a_scan_asks_for(
    tmp_path: Path,
) -> None:
    """A row group that turns out too large to be decoded whole has the room that decoding it in parts takes."""
    texts = _write_mixed_vectors(tmp_path / "a.parquet")
    scanned = scan_path(tmp_path)
    for share_bytes in (scanned.min_bytes, 24 * MIB, scanned.ample_bytes - MIB, scanned.ample_bytes):
        share = Share("reader", share_bytes)
        before_bytes, num_rows, num_batches = pa.total_allocated_bytes(), 0, 0
        for batch in _open(tmp_path, share):
            assert pa.total_allocated_bytes() - before_bytes <= share.held_bytes <= share.limit_bytes
            assert batch.column("vector").equals(texts.slice(num_rows, batch.num_rows))
            num_rows, num_batches = num_rows + batch.num_rows, num_batches + 1

        assert num_rows == len(texts)
        assert num_batches <= 4 * 16 * texts.nbytes / share_bytes


def test_a_place_among_batches_that_were_made_smaller_is_found_again(tmp_path: Path) -> None:
    lists = pa.array([[0]] * 50_000 + [[1] * 20_000] * 100)
    pq.write_table(pa.table({"list": lists}), tmp_path / "a.parquet")
    reader = open_path(tmp_path, share_bytes=8 * MIB)
    expected = [batch.num_rows for batch in reader]
    reader.set_epoch(0)
    taken = take(reader, len(expected) // 2)
    again = open_path(tmp_path, share_bytes=8 * MIB)
    again.load_state_dict(reader.state_dict())

    assert len(set(expected)) > 2
    assert [batch.num_rows for batch in again] == expected[len(taken) :]


def test_where_batches_end_does_not_depend_on_the_row_group_before(tmp_path: Path) -> None:
    """Else a run that continues in the second row group, with nothing retained, would cut otherwise."""
    words = pa.array([f"text number {number}" for number in range(60_000)] + [LONG[:200]])
    numbers = np.concatenate([np.full(1_000, 60_000), np.arange(60_000)]).astype(np.int32)
    texts = pa.DictionaryArray.from_arrays(pa.array(numbers), words).cast(pa.string())
    table = pa.table({"text": pa.concat_arrays([texts, texts])})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=len(texts))
    for share_bytes in (10 * MIB, 32 * MIB):
        reader = open_path(tmp_path, share_bytes=share_bytes)
        expected = [batch.num_rows for batch in reader]
        for stop in range(len(expected)):
            reader.set_epoch(0)
            take(reader, stop)
            assert [batch.num_rows for batch in reader] == expected[stop:]


def test_a_row_that_cannot_fit_names_the_row_and_the_setting(tmp_path: Path) -> None:
    pq.write_table(pa.table({"texts": [["a"], [LONG] * 100, ["c"]]}), tmp_path / "a.parquet")

    with pytest.raises(BudgetExceeded) as caught:
        list(open_path(tmp_path, share_bytes=3 * MIB))
    assert (
        "a.parquet: row 1 takes 1.9MiB in memory, and 3 times that while it is handed on, but reading "
        in str(caught.value)
    )
    assert str(caught.value).endswith("may hold 3MiB; raise memory.limit, or shorten the row")


def test_the_least_share_is_enough_and_less_is_not(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": np.arange(300_000), "text": ["a", "b"] * 150_000}), tmp_path / "a.parquet")
    min_bytes = scan_path(tmp_path).min_bytes

    assert flat(open_path(tmp_path, share_bytes=min_bytes), "x") == list(range(300_000))
    with pytest.raises(BudgetExceeded):
        open_path(tmp_path, share_bytes=min_bytes - 2 * KIB)


def test_the_ample_share_decodes_row_groups_whole(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": np.arange(30_000)}), tmp_path / "a.parquet", row_group_size=10_000)
    ample_bytes = scan_path(tmp_path).ample_bytes

    assert ample_bytes <= MIB
    assert [batch.num_rows for batch in open_path(tmp_path, share_bytes=ample_bytes)] == [10_000] * 3


def test_a_row_group_that_cannot_fit_is_refused_with_the_cure(tmp_path: Path) -> None:
    table = pa.table({f"c{index}": np.random.default_rng(index).random(200_000) for index in range(20)})
    pq.write_table(table, tmp_path / "a.parquet")

    with pytest.raises(
        BudgetExceeded,
        match=r"a.parquet: row group 0 needs [\d.]+MiB even when it is decoded in parts, but reading may hold 8MiB; "
        r"raise memory.limit, read fewer columns, or write smaller row groups \(penstock rewrite\)",
    ):
        open_path(tmp_path, share_bytes=8 * MIB)
