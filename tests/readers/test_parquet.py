"""Parquet: schemas, damage, how row groups fit the share, and how many requests a store is asked."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.parquet import OpenParquet
from penstock.readers.scan import BlockStream
from penstock.readers.storage import RemoteFile
from penstock.readers.stream import StreamPosition
from penstock.runtime.budget import Share
from tests.readers.object_store import ObjectStore
from tests.readers.samples import flat, numbers, open_path, scan_path, take, write_parquet


def test_a_batch_is_a_row_group(tmp_path: Path) -> None:
    reader = open_path(write_parquet(tmp_path, [5, 3], row_group_size=4))

    assert numbers(reader) == [[0, 1, 2, 3], [4], [5, 6, 7]]


def test_nested_columns_are_read_alone_and_whole(tmp_path: Path) -> None:
    table = pa.table(
        {
            "pairs": pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
            "deep": pa.array([[[1], []], None, [[2, 3]]], pa.list_(pa.list_(pa.int32()))),
            "deep.er": [1, 2, 3],
            "other": [1, 2, 3],
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    (batch,) = open_path(tmp_path, columns=["deep", "pairs"])

    assert batch.schema.names == ["deep", "pairs", "__row__"]
    assert batch.column("deep").to_pylist() == [[[1], []], None, [[2, 3]]]
    assert batch.column("pairs").to_pylist() == [[("a", 1)], None, []]


def test_files_must_agree_on_types_unless_they_have_no_rows(tmp_path: Path) -> None:
    pq.write_table(pa.table({"number": pa.nulls(0)}), tmp_path / "0.parquet")
    assert open_path(tmp_path / "0.parquet").schema.names == ["number", "__row__"]
    pq.write_table(pa.table({"number": [1, 2]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"other": ["a"]}).slice(0, 0), tmp_path / "2.parquet")
    assert flat(open_path(tmp_path, columns=["number"])) == [1, 2]
    pq.write_table(pa.table({"number": [1.5]}), tmp_path / "3.parquet")
    with pytest.raises(DataError, match=r"column 'number' is int64 in .*1.parquet but double in .*3.parquet"):
        open_path(tmp_path)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "3.parquet")
    with pytest.raises(DataError, match=r"3.parquet: there is no column 'number'; known: x"):
        open_path(tmp_path)


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    reader = open_path(write_parquet(tmp_path, [8]))
    write_parquet(tmp_path, [3])

    with pytest.raises(DataError, match=r"part-000.parquet: has changed while it was being read"):
        list(reader)


def test_string_and_large_string_are_read_as_one_type(tmp_path: Path) -> None:
    for index, text in enumerate((pa.string(), pa.large_string(), pa.string())):
        columns = {"x": pa.array(["a"], text), "list": pa.array([["b"]], pa.list_(text))}
        pq.write_table(pa.table(columns), tmp_path / f"{index}.parquet")
    reader = open_path(tmp_path)
    batches = list(reader)

    assert reader.schema.types[:2] == [pa.large_string(), pa.list_(pa.large_string())]
    assert [batch.schema for batch in batches] == [reader.schema] * 3
    assert flat(batches, "x") == ["a"] * 3
    assert open_path(tmp_path / "0.parquet").schema.field("x").type == pa.string()


# What is given out and held stays inside the share, whatever the file hides.

LONG = "a long text " * 1700


def _checked(reader: BlockStream, share: Share) -> list[int]:
    """The bytes of each batch, having checked that it and all that Arrow has allocated fit the share."""
    before_bytes, sizes = pa.total_allocated_bytes(), []
    for batch in reader:
        assert batch.nbytes <= share.held_bytes <= share.limit_bytes
        assert pa.total_allocated_bytes() - before_bytes <= share.held_bytes
        sizes.append(batch.nbytes)
    return sizes


def _open(path: Path, share: Share) -> BlockStream:
    return BlockStream(scan_path(path), share)


def _growing(num_short: int, num_long: int) -> pa.Array:
    words = pa.array(["short", LONG, None])
    numbers = np.repeat([0, 1, 2], [num_short, num_long, 3]).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(numbers), words).cast(pa.string())


@pytest.mark.parametrize("kind", ["text", "list of lists", "map"])
def test_texts_that_grow_behind_the_first_rows_stay_inside_the_share(tmp_path: Path, kind: str) -> None:
    """A small file: short texts, then texts of 20 kB that stand once in a dictionary."""
    texts = _growing(4_000, 1_997)
    offsets = pa.array(range(0, 6_001, 10), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, texts)
    values = {
        "text": texts,
        "list of lists": pa.ListArray.from_arrays(pa.array(range(0, 601, 2), pa.int32()), lists),
        "map": pa.MapArray.from_arrays(offsets, pa.array(["key"] * 6_000), texts),
    }[kind]
    pq.write_table(pa.table({"values": values}), tmp_path / "a.parquet")
    share = Share("reading", 8 * MIB)

    assert (tmp_path / "a.parquet").stat().st_size < MIB
    assert values.nbytes > 4 * share.limit_bytes
    assert max(_checked(_open(tmp_path, share), share)) <= share.limit_bytes // 4
    given = pa.Table.from_batches(_open(tmp_path, share)).column("values")
    assert given.to_pylist() == values.to_pylist()


def test_few_long_texts_among_many_short_ones_are_decoded_a_few_rows_at_a_time(tmp_path, monkeypatch):
    """Else a batch would be many times the share before anybody can see it."""
    pq.write_table(pa.table({"text": _growing(990_000, 10_000)}), tmp_path / "a.parquet")
    share = Share("reading", 8 * MIB)
    decoded: list[int] = []
    iter_batches = OpenParquet.iter_batches

    def noted(self, *args, **options):
        for batch in iter_batches(self, *args, **options):
            decoded.append(batch.nbytes)
            yield batch

    reader = _open(tmp_path, share)
    monkeypatch.setattr(OpenParquet, "iter_batches", noted)

    assert (tmp_path / "a.parquet").stat().st_size < MIB
    assert len(take(reader, 20)) == 20
    reader.position = StreamPosition(0, row=995_000)
    assert len(take(reader, 20)) == 20
    assert max(decoded) <= share.limit_bytes // 8


def test_lists_that_grow_behind_the_first_rows_are_decoded_in_smaller_batches(tmp_path: Path) -> None:
    """The footer tells only how many values there are in all: here nearly all are in the last rows."""
    lengths = np.repeat([1, 20_000], [100_000, 100])
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int32)
    lists = pa.ListArray.from_arrays(pa.array(offsets), pa.array(np.arange(offsets[-1]) % 100))
    pq.write_table(pa.table({"list": lists}), tmp_path / "a.parquet")
    share = Share("reading", 8 * MIB)
    reader = _open(tmp_path, share)

    assert lists.nbytes > share.limit_bytes
    assert max(_checked(reader, share)) <= share.limit_bytes // 2
    reader.set_epoch(0)
    batches = list(reader)
    assert pa.Table.from_batches(batches).column("list").combine_chunks().equals(lists)
    # A position among batches that were made smaller is found again.
    reader.set_epoch(0)
    take(reader, len(batches) // 2)
    again = _open(tmp_path, share)
    again.load_state_dict(reader.state_dict())
    assert len({batch.num_rows for batch in batches}) > 2
    assert list(again) == batches[len(batches) // 2 :]


def test_long_texts_behind_a_full_dictionary_are_read_with_any_share_that_a_scan_asks_for(tmp_path):
    """The dictionary overflows, and the writer looks at the size of a page every 1,024 rows."""
    generator = np.random.default_rng(0)
    words = pa.array(["|".join(f"{number:.6f}" for number in row) for row in generator.random((1_000, 256))])
    numbers = pa.array(generator.integers(0, 1_000, 20_000).astype(np.int32))
    texts = pa.DictionaryArray.from_arrays(numbers, words).cast(pa.string())
    table = pa.table({"vector": texts, "label": generator.integers(0, 2, 20_000).astype(np.float32)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000)
    scanned = scan_path(tmp_path)

    min_bytes, ample_bytes, *_ = scanned.sizes
    for share_bytes in (min_bytes, 24 * MIB, ample_bytes - MIB, ample_bytes):
        share = Share("reader", share_bytes)
        assert len(_checked(_open(tmp_path, share), share)) <= 4 * 16 * texts.nbytes / share_bytes
        assert pa.Table.from_batches(_open(tmp_path, share)).column("vector").combine_chunks().equals(texts)


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


def test_the_min_share_is_enough_and_less_is_not_and_the_ample_one_decodes_row_groups_whole(tmp_path):
    table = pa.table({"x": np.arange(300_000), "text": ["a", "b"] * 150_000})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100_000)
    scanned = scan_path(tmp_path)
    ample = open_path(tmp_path, share_bytes=scanned.sizes.ample_bytes)

    assert flat(open_path(tmp_path, share_bytes=scanned.sizes.min_bytes), "x") == list(range(300_000))
    assert [batch.num_rows for batch in ample] == [100_000] * 3
    with pytest.raises(BudgetExceeded):
        open_path(tmp_path, share_bytes=scanned.sizes.min_bytes - 2 * KIB)


def test_a_row_group_that_cannot_fit_is_refused_with_the_cure(tmp_path: Path) -> None:
    table = pa.table({f"c{index}": np.random.default_rng(index).random(200_000) for index in range(20)})
    pq.write_table(table, tmp_path / "a.parquet")

    with pytest.raises(
        BudgetExceeded,
        match=r"a.parquet: row group 0 needs [\d.]+MiB even when it is decoded in parts, but reading may hold 8MiB; "
        r"raise memory.limit, read fewer columns, or write smaller row groups \(penstock rewrite\)",
    ):
        open_path(tmp_path, share_bytes=8 * MIB)


# In an object store.

NUM_COLUMNS, NUM_ROWS, NUM_GROUPS = 8, 100_000, 4


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all requests from now on."""
    sizes: list[int] = []
    original = RemoteFile.request

    def counted(remote: RemoteFile, offset: int, num_bytes: int) -> bytes:
        data = original(remote, offset, num_bytes)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(RemoteFile, "request", counted)
    return sizes


@pytest.fixture(scope="module")
def written_bytes(shared_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> int:
    """A file of several row groups with several pages in each column."""
    random = np.random.default_rng(0)
    columns = {f"column_{index}": random.integers(0, 2**62, NUM_ROWS) for index in range(NUM_COLUMNS)}
    path = tmp_path_factory.mktemp("wide") / "wide.parquet"
    pq.write_table(pa.table(columns), path, row_group_size=NUM_ROWS // NUM_GROUPS, data_page_size=64 * KIB)
    shared_store.put_folder("wide", path.parent)
    return path.stat().st_size


@pytest.fixture
def file_bytes(written_bytes: int, object_store: ObjectStore) -> int:
    return written_bytes


def test_a_store_is_read_in_few_requests(file_bytes: int, requests: list[int]) -> None:
    scanned = scan_path("s3://wide/wide.parquet")
    assert scanned.num_rows == NUM_ROWS
    assert len(requests) == 1  # to read the footer
    assert sum(requests) <= MIB
    ample, tight = Share("reading", scanned.sizes.ample_bytes), Share("reading", scanned.sizes.min_bytes)
    requests.clear()

    assert sum(batch.num_rows for batch in BlockStream(scanned, ample)) == NUM_ROWS
    assert len(requests) == 1 + NUM_GROUPS
    assert sum(requests) <= file_bytes + MIB
    requests.clear()
    # Row groups that do not fit are read through windows.
    assert sum(batch.num_rows for batch in BlockStream(scanned, tight)) == NUM_ROWS
    assert len(requests) > 1 + NUM_GROUPS
    assert tight.peak_bytes <= scanned.sizes.min_bytes
