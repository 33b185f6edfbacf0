"""What holds for every reader. A new format adds one row to EVERY_READER."""

import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import CheckpointError, DataError
from penstock.config.sizes import MIB
from penstock.readers.reading import BlockStream
from penstock.readers.stream import ROW_COLUMN, locate
from tests.readers.samples import (
    CSV_WITH_HEADER,
    flat,
    open_path,
    row_ids,
    table_of,
    take,
    write_csv,
    write_parquet,
    write_tfrecords,
)

# Small enough that a chunk of text is read in several pieces.
SMALL_SHARE_BYTES = 20_000

LARGE_TEXT = "a text that stands once in the dictionary of the file" * 50

Make = Callable[[Path, list[int], int | None], BlockStream]


def _parquet(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    return open_path(write_parquet(folder, rows_per_file, row_group_size=40), seed=seed)


def _paged_parquet(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    write_parquet(folder, rows_per_file, row_group_size=100_000)
    return open_path(folder, columns=["number", "list"], share_bytes=60_000, seed=seed)


def _parquet_with_large_texts(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    write_parquet(folder, rows_per_file, row_group_size=100_000, text=LARGE_TEXT)
    return open_path(folder, columns=["text", "number"], share_bytes=MIB, seed=seed)


def _csv(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    write_csv(folder, rows_per_file)
    return open_path(folder, CSV_WITH_HEADER, share_bytes=SMALL_SHARE_BYTES, seed=seed)


def _csv_gz(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    for path in write_csv(folder, rows_per_file).glob("*.csv"):
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()
    return open_path(folder, CSV_WITH_HEADER, share_bytes=SMALL_SHARE_BYTES, seed=seed)


def _json(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    start = 0
    for index, num_rows in enumerate(rows_per_file):
        lines = [json.dumps(row) + "\n" for row in table_of(start, start + num_rows).to_pylist()]
        (folder / f"part-{index:03}.jsonl").write_text("".join(lines) or "\n")
        start += num_rows
    return open_path(folder, share_bytes=3 * SMALL_SHARE_BYTES, seed=seed)


def _tfrecord(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    write_tfrecords(folder, rows_per_file)
    return open_path(folder, share_bytes=10 * SMALL_SHARE_BYTES, seed=seed)


def _tfrecord_gz(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    write_tfrecords(folder, rows_per_file, suffix=".tfrecord.gz")
    return open_path(folder, share_bytes=10 * SMALL_SHARE_BYTES, seed=seed)


def _write_arrow(folder: Path, rows_per_file: list[int], compression: str | None = None) -> None:
    start = 0
    options = pa.ipc.IpcWriteOptions(compression=compression)
    for index, num_rows in enumerate(rows_per_file):
        table = table_of(start, start + num_rows)
        with pa.ipc.new_file(folder / f"part-{index:03}.arrow", table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=150)
        start += num_rows


def _arrow(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    _write_arrow(folder, rows_per_file)
    return open_path(folder, share_bytes=SMALL_SHARE_BYTES, seed=seed)


def _compressed_arrow(folder: Path, rows_per_file: list[int], seed: int | None) -> BlockStream:
    _write_arrow(folder, rows_per_file, "zstd")
    return open_path(folder, share_bytes=SMALL_SHARE_BYTES, seed=seed)


def _numpy(folder: Path, rows_per_file: list[int], seed: int | None, save: Any = np.savez) -> BlockStream:
    start = 0
    for index, num_rows in enumerate(rows_per_file):
        texts = np.array([f"row {number}" for number in range(start, start + num_rows)], "U7")
        arrays = {"number": np.arange(start, start + num_rows), "text": texts}
        save(folder / f"part-{index:03}.npz", **arrays)
        start += num_rows
    return open_path(folder, share_bytes=10 * SMALL_SHARE_BYTES, seed=seed)


EVERY_READER: dict[str, Make] = {
    "parquet": _parquet,
    "parquet, page by page": _paged_parquet,
    "parquet, texts written out a few rows at a time": _parquet_with_large_texts,
    "csv": _csv,
    "csv, compressed": _csv_gz,
    "json": _json,
    "tfrecord": _tfrecord,
    "tfrecord, compressed": _tfrecord_gz,
    "arrow": _arrow,
    "arrow, compressed": _compressed_arrow,
    "numpy": _numpy,
    "numpy, compressed": partial(_numpy, save=np.savez_compressed),
}
ROWS = [5, 0, 700, 1]

each_reader = pytest.mark.parametrize("make", EVERY_READER.values(), ids=EVERY_READER.keys())
each_order = pytest.mark.parametrize("seed", [None, 7], ids=["in order", "shuffled blocks"])


@each_reader
def test_rows_come_in_the_order_of_the_files(make: Make, tmp_path: Path) -> None:
    assert flat(make(tmp_path, ROWS, None)) == list(range(706))


@each_reader
def test_every_batch_has_the_schema_of_the_stream_with_the_origin_last(make: Make, tmp_path: Path) -> None:
    reader = make(tmp_path, ROWS, None)

    assert reader.schema.names[-1] == ROW_COLUMN
    for batch in reader:
        assert batch.schema.equals(reader.schema, check_metadata=True)
        assert batch.num_rows > 0


@each_reader
@each_order
def test_the_origin_names_file_and_row(make: Make, tmp_path: Path, seed: int | None) -> None:
    batches = list(make(tmp_path, ROWS, seed))
    expected = {0: (0, 0), 4: (0, 4), 5: (2, 0), 704: (2, 699), 705: (3, 0)}
    found = dict(zip(flat(batches), map(locate, row_ids(batches)), strict=True))

    assert {number: found[number] for number in expected} == expected


@each_reader
@each_order
def test_resumes_after_every_batch_over_two_epochs(make: Make, tmp_path: Path, seed: int | None) -> None:
    reader = make(tmp_path, [5, 0, 300, 1], seed)
    for epoch in range(2):
        reader.set_epoch(epoch)
        expected = list(reader)
        assert len(expected) >= 3
        for stop in range(len(expected) + 1):
            reader.set_epoch(epoch)
            before = take(reader, stop)
            saved = json.loads(json.dumps(reader.state_dict()))
            reader.set_epoch(epoch + 5)
            reader.load_state_dict(saved)
            assert before + list(reader) == expected


@each_reader
def test_leaving_a_loop_and_starting_another_continues(make: Make, tmp_path: Path) -> None:
    reader = make(tmp_path, ROWS, None)

    assert flat(take(reader, 1)) + flat(take(reader, 1)) + flat(reader) == list(range(706))
    assert list(reader) == []


@each_reader
def test_an_iterator_that_is_left_alone_does_not_block_the_next(make: Make, tmp_path: Path) -> None:
    reader = make(tmp_path, [400, 400], None)
    abandoned = iter(reader)
    next(abandoned)
    reader.set_epoch(0)

    assert flat(reader) == list(range(800))


@each_reader
def test_each_epoch_has_an_order_of_its_own_and_all_rows(make: Make, tmp_path: Path) -> None:
    reader = make(tmp_path, [1] * 30, 7)
    orders = []
    for epoch in (0, 1, 0):
        reader.set_epoch(epoch)
        orders.append(flat(reader))

    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(30))


@each_reader
def test_a_place_of_another_order_is_refused(make: Make, tmp_path: Path) -> None:
    saved = make(tmp_path, ROWS, 7).state_dict()

    with pytest.raises(CheckpointError, match=r"saved with shuffle seed 7 but the run has no shuffle"):
        make(tmp_path, ROWS, None).load_state_dict(saved)


@each_reader
def test_a_file_that_was_replaced_is_noticed(make: Make, tmp_path: Path) -> None:
    saved = make(tmp_path, [5, 700], None).state_dict()

    with pytest.raises(
        CheckpointError, match=r"part-001.*: is not the file that the position was saved with"
    ):
        make(tmp_path, [5, 701], None).load_state_dict(saved)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_the_same_size_and_rows_with_another_content_is_noticed(
    tmp_path: Path, suffix: str
) -> None:
    def write(value: int) -> BlockStream:
        table = pa.table({"x": [value] * 9})
        (pa.csv.write_csv if suffix == "csv" else pa.parquet.write_table)(table, tmp_path / f"a.{suffix}")
        return open_path(tmp_path, CSV_WITH_HEADER)

    saved = write(1).state_dict()
    size_bytes = (tmp_path / f"a.{suffix}").stat().st_size
    other = write(2)

    assert (tmp_path / f"a.{suffix}").stat().st_size == size_bytes
    with pytest.raises(CheckpointError, match=r"is not the file that the position was saved with"):
        other.load_state_dict(saved)


@each_reader
def test_a_file_more_is_noticed(make: Make, tmp_path: Path) -> None:
    saved = make(tmp_path, [5, 7], None).state_dict()

    with pytest.raises(CheckpointError, match=r"saved with 2 files but there are 3 now"):
        make(tmp_path, [5, 7, 1], None).load_state_dict(saved)


@each_reader
def test_a_missing_column_names_the_nearest(make: Make, tmp_path: Path) -> None:
    make(tmp_path, [5], None)

    with pytest.raises(DataError, match=r"part-000.*: there is no column 'numbr'; did you mean 'number'\?"):
        open_path(tmp_path, CSV_WITH_HEADER, columns=["text", "numbr"])


@each_reader
def test_only_the_wanted_columns_are_given_in_their_order(make: Make, tmp_path: Path) -> None:
    make(tmp_path, [5], None)
    reader = open_path(tmp_path, CSV_WITH_HEADER, columns=["text", "number"])

    assert reader.schema.names == ["text", "number", ROW_COLUMN]
    assert [batch.schema.names for batch in reader] == [reader.schema.names]


@each_reader
def test_no_bytes_stay_leased(make: Make, tmp_path: Path) -> None:
    reader = make(tmp_path, ROWS, None)
    take(reader, 1)
    list(reader)

    assert reader._share.held_bytes == 0
    assert 0 < reader._share.peak_bytes <= reader._share.limit_bytes


@each_reader
@settings(max_examples=20)
@given(
    rows_per_file=st.lists(st.integers(0, 300), min_size=1, max_size=4),
    seed=st.none() | st.integers(0, 9),
    data=st.data(),
)
def test_every_row_once_whatever_the_files_and_the_stop(
    make: Make,
    tmp_path_factory: pytest.TempPathFactory,
    rows_per_file: list[int],
    seed: int | None,
    data: st.DataObject,
) -> None:
    reader = make(tmp_path_factory.mktemp("data"), rows_per_file, seed)
    expected = list(reader)
    stop = data.draw(st.integers(0, len(expected)))
    reader.set_epoch(0)
    before = take(reader, stop)
    saved = reader.state_dict()
    reader.set_epoch(3)
    reader.load_state_dict(saved)

    assert sorted(flat(expected)) == list(range(sum(rows_per_file)))
    assert before + list(reader) == expected


def test_types_that_arrow_cannot_reorder_are_made_plain(tmp_path: Path) -> None:
    for index, words in enumerate((["a", "b"], ["c", "a"])):
        table = pa.table(
            {
                "view": pa.array(words, pa.string_view()),
                "words": pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(words)),
            }
        )
        pa.parquet.write_table(table, tmp_path / f"{index}.parquet")
    reader = open_path(tmp_path, share_bytes=MIB)

    assert reader.schema.types[:2] == [pa.string(), pa.dictionary(pa.int32(), pa.string())]
    assert pa.Table.from_batches(reader).column("words").to_pylist() == ["a", "b", "c", "a"]
