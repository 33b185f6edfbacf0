"""Arrow IPC files and streams: rows equal the tables, whatever their record batches and the size of the share."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.scan import BlockStream
from penstock.readers.stream import ROW_COLUMN
from penstock.runtime.budget import Share
from tests.readers.samples import flat, open_path, scan_path, table_from, table_of, take

WRITERS: dict[str, Any] = {"file": pa.ipc.new_file, "stream": pa.ipc.new_stream}
each_format = pytest.mark.parametrize("form", WRITERS)
each_compression = pytest.mark.parametrize("compression", [None, "zstd"])


def write(
    path: Path,
    table: pa.Table,
    form: str = "file",
    compression: str | None = None,
    batch_rows: int | None = None,
    **options: Any,
) -> Path:
    ipc_options = pa.ipc.IpcWriteOptions(compression=compression, **options)
    with pa.OSFile(str(path), "wb") as sink, WRITERS[form](sink, table.schema, options=ipc_options) as writer:
        writer.write_table(table, max_chunksize=batch_rows)
    return path


# Formats


def test_feather_files_and_a_stream_without_a_mark_at_its_end(tmp_path: Path) -> None:
    pyarrow.feather.write_feather(table_of(0, 9), tmp_path / "a.feather", "lz4", chunksize=5)
    write(tmp_path / "b.ipc", table_of(9, 14), "stream")
    whole = (tmp_path / "b.ipc").read_bytes()
    (tmp_path / "b.ipc").write_bytes(whole[:-8])

    assert table_from(open_path(tmp_path)) == table_of(0, 14)


@each_format
def test_files_and_record_batches_without_rows(tmp_path: Path, form: str) -> None:
    """An empty file has no types to disagree with."""
    write(tmp_path / "a.arrow", pa.table({"number": pa.array([], pa.string())}), form)
    schema = table_of(0, 0).schema
    with pa.OSFile(str(tmp_path / "b.arrow"), "wb") as sink, WRITERS[form](sink, schema) as writer:
        for start, stop in ((0, 0), (0, 3), (3, 3), (3, 5)):
            writer.write_batch(pa.record_batch(table_of(start, stop).to_pydict(), schema))

    assert scan_path(tmp_path).blocks.first_row.tolist() == [0, 3]
    assert flat(open_path(tmp_path, columns=["number"])) == [0, 1, 2, 3, 4]


# Types


def every_type(num_rows: int) -> pa.Table:
    """One column of each type that features can use."""
    numbers = np.arange(num_rows)
    words = pa.array([f"word {number % 3} {'long ' * (number % 4)}" for number in numbers], pa.string())
    lists = [[str(number)] * (number % 3) for number in numbers]
    return pa.table(
        {
            "bool": pa.array(numbers % 2 == 0),
            "int8": pa.array(numbers % 100, pa.int8()),
            "null": pa.array([None if number % 5 == 0 else number for number in numbers], pa.int64()),
            "text": words,
            "large": words.cast(pa.large_string()),
            "view": words.cast(pa.string_view()),
            "list": pa.array(lists, pa.list_(pa.string())),
            "views": pa.array(lists, pa.large_list(pa.string_view())),
            "fixed": pa.array([[number, 1] for number in numbers], pa.list_(pa.float32(), 2)),
            "map": pa.array([[(str(number), 1.5)] for number in numbers], pa.map_(pa.string(), pa.float64())),
            "word": words.dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string())),
            "day": pa.array(numbers, pa.timestamp("us")),
        }
    )


@each_format
def test_what_is_not_requested_may_be_of_any_type(tmp_path: Path, form: str) -> None:
    table = every_type(50).append_column("struct", pa.array([{"a": 1, "b": "x"}] * 50))
    table = table.append_column("bytes", pa.array([b"x"] * 50)).append_column("nothing", pa.nulls(50))
    write(tmp_path / "a.arrow", table.select(reversed(table.column_names)), form)
    names = ["day", "views", "int8"]

    assert table_from(open_path(tmp_path, columns=names)).to_pydict() == table.select(names).to_pydict()


@pytest.mark.parametrize(("form", "is_delta"), [("file", True), ("stream", True), ("stream", False)])
@pytest.mark.parametrize("seed", [None, 5])
def test_dictionaries_that_grow_or_are_replaced(tmp_path, form, is_delta, seed):
    batches = []
    for index in range(6):
        words = pa.array([f"word {word}" for word in range(0 if is_delta else index, index + 2)])
        numbers = pa.array([len(words) - 1, 0, None], pa.int32())
        batches.append(pa.record_batch({"word": pa.DictionaryArray.from_arrays(numbers, words)}))
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=is_delta)
    with (
        pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink,
        WRITERS[form](sink, batches[0].schema, options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    given = [batch.column("word").to_pylist() for batch in open_path(tmp_path, seed=seed)]

    expected = [batch.column("word").to_pylist() for batch in batches]
    assert (sorted(given, key=str), given == expected) == (sorted(expected, key=str), seed is None)


# Memory


@each_format
def test_a_huge_record_batch_is_read_a_few_rows_at_a_time(tmp_path: Path, form: str) -> None:
    """Two million rows in one record batch, 48 MB, with a share of 2 MiB."""
    numbers = np.arange(2_000_000)
    table = pa.table(
        {
            "number": numbers,
            "half": numbers / 2,
            "pair": pa.FixedSizeListArray.from_arrays(pa.array(np.repeat(numbers, 2).astype(np.float32)), 2),
        }
    )
    write(tmp_path / "a.arrow", table, form)
    share = Share("reading", 2 * MIB)
    scanned = scan_path(tmp_path)
    before_bytes, total = pa.total_allocated_bytes(), 0
    for batch in BlockStream(scanned, share):
        total += batch.column("number").to_numpy().sum() + batch.column("pair").flatten().to_numpy().sum()  # type: ignore[attr-defined]
        assert batch.drop_columns(ROW_COLUMN).nbytes <= share.held_bytes <= share.limit_bytes
        assert pa.total_allocated_bytes() - before_bytes <= share.limit_bytes

    assert scanned.blocks.num_rows.tolist() == [2_000_000]
    assert total == pytest.approx(3 * numbers.sum(), rel=1e-6)


def test_a_compressed_record_batch_that_does_not_fit_is_said_before_the_first_step(tmp_path: Path) -> None:
    write(tmp_path / "a.arrow", pa.table({"x": np.zeros(2_000_000)}), compression="zstd")
    scanned = scan_path(tmp_path)

    assert (tmp_path / "a.arrow").stat().st_size < MIB
    assert 30 * MIB < scanned.sizes.min_bytes < 31 * MIB
    with pytest.raises(
        BudgetExceeded,
        match=r"a.arrow: record batch 0 has 15.3MiB and is decoded whole, beside the one before it, which "
        r"needs 30.5MiB, but reading may hold 20MiB; raise memory.limit, read fewer columns, or write smaller record "
        r"batches \(penstock rewrite\)",
    ):
        open_path(tmp_path, share_bytes=20 * MIB)


def test_rows_that_grow_are_given_out_in_smaller_batches_until_one_does_not_fit(tmp_path: Path) -> None:
    texts = ["short"] * 20_000 + ["long" * 5_000] * 200
    write(tmp_path / "a.arrow", pa.table({"text": [*texts, "long" * 500_000]}))
    share = Share("reading", MIB)
    batches, given = iter(BlockStream(scan_path(tmp_path), share)), []
    while len(given) < len(texts):
        batch = next(batches)
        assert batch.drop_columns(ROW_COLUMN).nbytes <= share.held_bytes <= share.limit_bytes
        given += batch.column("text").to_pylist()

    assert given == texts
    with pytest.raises(BudgetExceeded, match=r"a.arrow: row 20200 takes 1.9MiB, and two such rows must fit,"):
        next(batches)


@settings(max_examples=30)
@given(
    rows_per_file=st.lists(st.integers(0, 60), min_size=1, max_size=4),
    batch_rows=st.integers(1, 80),
    form=st.sampled_from(list(WRITERS)),
    compression=st.sampled_from([None, "lz4", "zstd"]),
    columns=st.none() | st.lists(st.sampled_from(every_type(0).column_names), min_size=1, unique=True),
    extra_kib=st.integers(0, 300),
    seed=st.none() | st.integers(0, 9),
    data=st.data(),
)
def test_rows_equal_the_tables_inside_the_share_wherever_it_stops(
    tmp_path_factory: pytest.TempPathFactory,
    rows_per_file: list[int],
    batch_rows: int,
    form: str,
    compression: str | None,
    columns: list[str] | None,
    extra_kib: int,
    seed: int | None,
    data: st.DataObject,
) -> None:
    folder, start = tmp_path_factory.mktemp("arrow"), 0
    table = every_type(sum(rows_per_file))
    for index, num_rows in enumerate(rows_per_file):
        write(folder / f"{index}.arrow", table.slice(start, num_rows), form, compression, batch_rows)
        start += num_rows
    scanned = scan_path(folder, columns=columns)
    share = Share("reading", scanned.sizes.min_bytes + extra_kib * KIB)
    reader = BlockStream(scanned, share, seed)
    batches = list(reader)
    stop = data.draw(st.integers(0, len(batches)))
    reader.set_epoch(0)
    before = take(reader, stop)
    reader.load_state_dict(reader.state_dict())

    rows = pa.Table.from_batches(batches, reader.schema)
    assert in_order(rows) == table.select(columns or table.column_names).to_pydict()
    assert before + list(reader) == batches
    assert share.held_bytes == 0
    assert share.peak_bytes <= share.limit_bytes


def in_order(rows: pa.Table) -> dict[str, list[Any]]:
    order = np.argsort(rows.column(ROW_COLUMN).to_numpy())
    values = rows.drop_columns(ROW_COLUMN).to_pydict()
    return {name: [column[row] for row in order] for name, column in values.items()}


# What can be wrong


@each_format
@pytest.mark.parametrize("left_bytes", [3, 100, 700, -9])
def test_a_file_that_is_cut_short(tmp_path: Path, form: str, left_bytes: int) -> None:
    write(tmp_path / "a.arrow", table_of(0, 100), form, batch_rows=50)
    whole = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "a.arrow").write_bytes(whole[:left_bytes])

    with pytest.raises(
        DataError, match=r"a.arrow: is (cut short: .*; write it again|neither an Arrow IPC file nor)"
    ):
        open_path(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"FEA1 and so on", r"a.arrow: is Feather version 1; write it again as version 2"),
        (b"PAR1 and so on", r"a.arrow: is neither an Arrow IPC file nor a stream"),
        (
            b"ARROW1\0\0" + bytes(100) + b"\x08\0\0\0ARROW1",
            r"a.arrow: cannot be read as Arrow IPC: .*; is it damaged\?",
        ),
    ],
)
def test_files_of_another_kind(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "a.arrow").write_bytes(content)

    with pytest.raises(DataError, match=message):
        open_path(tmp_path)


@pytest.mark.parametrize(("form", "compression"), [("file", None), ("stream", "zstd")])
def test_a_damaged_byte_gives_rows_or_one_clear_line(tmp_path, form, compression):
    path = write(tmp_path / "a.arrow", table_of(0, 4), form, compression, batch_rows=4)
    whole = path.read_bytes()
    for at in range(len(whole)):
        # Huge or negative, in turns.
        path.write_bytes(whole[:at] + (b"\x7f" if at % 2 else b"\x80") + whole[at + 1 :])
        try:
            assert all(batch.num_rows for batch in open_path(path))
        except (DataError, BudgetExceeded) as error:
            assert re.match(rf"({path}|column)[^\n]*$", str(error))  # noqa: PT017


@each_format
def test_a_file_that_became_shorter_since_it_was_scanned(tmp_path: Path, form: str) -> None:
    write(tmp_path / "a.arrow", table_of(0, 100), form)
    scanned = scan_path(tmp_path)
    (tmp_path / "a.arrow").write_bytes(b"ARROW1")

    with pytest.raises(DataError, match=r"a.arrow: is cut short: it has .*; write it again"):
        list(BlockStream(scanned, Share("reading", MIB)))
