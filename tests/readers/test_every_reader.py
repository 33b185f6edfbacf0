"""What holds for every reader, on a disk and in an object store. A new format adds one row to EVERY_READER."""

import gzip
import json
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from penstock.config.errors import CheckpointError, DataError
from penstock.config.sizes import MIB
from penstock.readers import storage
from penstock.readers.scan import BlockStream
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import ROW_COLUMN, locate
from tests.readers.object_store import ObjectStore
from tests.readers.samples import (
    CSV_WITH_HEADER,
    flat,
    open_path,
    row_ids,
    take,
    write_csv,
    write_parquet,
    write_parts,
    write_tfrecords,
)

# Small enough that a chunk of text is read in several pieces.
SMALL_SHARE_BYTES = 20_000

LARGE_TEXT = "a text that stands once in the dictionary of the file" * 50

Write = Callable[[Path, Sequence[int]], object]


class Reader(NamedTuple):
    write: Write
    reading: ReadingSection = ReadingSection()
    share_bytes: int = MIB
    columns: tuple[str, ...] | None = None

    def open(self, path: Path | str, seed: int | None = None) -> BlockStream:
        return open_path(path, self.reading, self.columns, self.share_bytes, seed)

    def make(self, folder: Path, rows_per_file: Sequence[int], seed: int | None = None) -> BlockStream:
        self.write(folder, rows_per_file)
        return self.open(folder, seed)


def _csv_gz(folder: Path, rows_per_file: Sequence[int]) -> None:
    for path in write_csv(folder, rows_per_file).glob("*.csv"):
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
        path.unlink()


def _json(folder: Path, rows_per_file: Sequence[int]) -> None:
    def write(table: pa.Table, path: Path) -> None:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()) or "\n")

    write_parts(folder, rows_per_file, ".jsonl", write)


def _arrow(compression: str | None) -> Write:
    options = pa.ipc.IpcWriteOptions(compression=compression)

    def write(table: pa.Table, path: Path) -> None:
        with pa.ipc.new_file(path, table.schema, options=options) as writer:
            writer.write_table(table, max_chunksize=150)

    return lambda folder, rows_per_file: write_parts(folder, rows_per_file, ".arrow", write)


def _numpy(save: Any) -> Write:
    def write(table: pa.Table, path: Path) -> None:
        save(path, number=table["number"].to_numpy(), text=np.array(table["text"].to_pylist(), "U7"))

    return lambda folder, rows_per_file: write_parts(folder, rows_per_file, ".npz", write)


EVERY_READER: dict[str, Reader] = {
    "parquet": Reader(lambda folder, rows: write_parquet(folder, rows, row_group_size=40)),
    "parquet, some rows at a time": Reader(
        lambda folder, rows: write_parquet(folder, rows, row_group_size=100_000),
        share_bytes=60_000,
        columns=("number", "list"),
    ),
    "parquet, texts written out a few rows at a time": Reader(
        lambda folder, rows: write_parquet(folder, rows, row_group_size=100_000, text=LARGE_TEXT),
        columns=("text", "number"),
    ),
    "csv": Reader(write_csv, CSV_WITH_HEADER, SMALL_SHARE_BYTES),
    "csv, compressed": Reader(_csv_gz, CSV_WITH_HEADER, SMALL_SHARE_BYTES),
    "json": Reader(_json, share_bytes=3 * SMALL_SHARE_BYTES),
    "tfrecord": Reader(write_tfrecords, share_bytes=10 * SMALL_SHARE_BYTES),
    "tfrecord, compressed": Reader(
        lambda folder, rows: write_tfrecords(folder, rows, ".tfrecord.gz"), share_bytes=10 * SMALL_SHARE_BYTES
    ),
    "arrow": Reader(_arrow(None), share_bytes=SMALL_SHARE_BYTES),
    "arrow, compressed": Reader(_arrow("zstd"), share_bytes=2 * SMALL_SHARE_BYTES),
    "numpy": Reader(_numpy(np.savez), share_bytes=10 * SMALL_SHARE_BYTES),
    "numpy, compressed": Reader(_numpy(np.savez_compressed), share_bytes=10 * SMALL_SHARE_BYTES),
}
ROWS = [5, 0, 700, 1]

each_reader = pytest.mark.parametrize("reader", EVERY_READER.values(), ids=EVERY_READER.keys())
each_order = pytest.mark.parametrize("seed", [None, 7], ids=["in order", "shuffled blocks"])
_buckets = count()


@each_reader
def test_rows_come_in_the_order_of_the_files_with_one_schema(reader: Reader, tmp_path: Path) -> None:
    stream = reader.make(tmp_path, ROWS)
    batches = list(stream)

    assert flat(batches) == list(range(706))
    assert stream.schema.names[-1] == ROW_COLUMN
    assert all(batch.schema.equals(stream.schema, check_metadata=True) for batch in batches)
    assert all(batch.num_rows for batch in batches)
    assert stream._share.held_bytes == 0
    assert 0 < stream._share.peak_bytes <= stream._share.limit_bytes


@each_reader
@each_order
def test_row_ids_name_file_and_row(reader: Reader, tmp_path: Path, seed: int | None) -> None:
    batches = list(reader.make(tmp_path, ROWS, seed))
    expected = {0: (0, 0), 4: (0, 4), 5: (2, 0), 704: (2, 699), 705: (3, 0)}
    found = dict(zip(flat(batches), map(locate, row_ids(batches)), strict=True))

    assert {number: found[number] for number in expected} == expected


@each_reader
@each_order
def test_resumes_after_every_batch_over_two_epochs(reader: Reader, tmp_path: Path, seed: int | None) -> None:
    stream = reader.make(tmp_path, [5, 0, 300, 1], seed)
    for epoch in range(2):
        stream.set_epoch(epoch)
        expected = list(stream)
        assert len(expected) >= 3
        for stop in range(len(expected) + 1):
            stream.set_epoch(epoch)
            before = take(stream, stop)
            saved = json.loads(json.dumps(stream.state_dict()))
            stream.set_epoch(epoch + 5)
            stream.load_state_dict(saved)
            assert before + list(stream) == expected


@each_reader
def test_leaving_a_loop_and_starting_another_continues(reader: Reader, tmp_path: Path) -> None:
    stream = reader.make(tmp_path, ROWS)

    assert flat(take(stream, 1)) + flat(take(stream, 1)) + flat(stream) == list(range(706))
    assert list(stream) == []

    stream.set_epoch(0)
    abandoned = iter(stream)
    next(abandoned)
    stream.set_epoch(0)
    assert flat(stream) == list(range(706))


@each_reader
def test_each_epoch_has_another_order_and_all_rows(reader: Reader, tmp_path: Path) -> None:
    stream = reader.make(tmp_path, [1] * 30, 7)
    orders = []
    for epoch in (0, 1, 0):
        stream.set_epoch(epoch)
        orders.append(flat(stream))

    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(30))


@each_reader
def test_a_position_with_another_order_or_other_files_is_refused(reader: Reader, tmp_path: Path) -> None:
    saved = reader.make(tmp_path, [5, 70], 7).state_dict()

    with pytest.raises(CheckpointError, match=r"saved with shuffle seed 7 but the run has no shuffle"):
        reader.open(tmp_path).load_state_dict(saved)
    with pytest.raises(CheckpointError, match=r"part-001.*: is not the file that the position was saved"):
        reader.make(tmp_path, [5, 71], 7).load_state_dict(saved)
    with pytest.raises(CheckpointError, match=r"saved with 2 files but there are 3 now"):
        reader.make(tmp_path, [5, 70, 1], 7).load_state_dict(saved)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_file_of_the_same_size_and_rows_with_another_content_is_noticed(tmp_path, suffix):
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
def test_the_requested_columns_are_given_in_their_order(reader: Reader, tmp_path: Path) -> None:
    reader.write(tmp_path, [5])
    stream = open_path(tmp_path, CSV_WITH_HEADER, columns=["text", "number"])

    assert stream.schema.names == ["text", "number", ROW_COLUMN]
    assert [batch.schema.names for batch in stream] == [stream.schema.names]
    with pytest.raises(DataError, match=r"part-000.*: there is no column 'numbr'; did you mean 'number'\?"):
        open_path(tmp_path, CSV_WITH_HEADER, columns=["text", "numbr"])


@each_reader
def test_an_object_store_gives_the_rows_of_the_disk_and_takes_its_positions(reader, tmp_path, object_store):
    bucket = f"every-reader-{next(_buckets)}"
    here = reader._replace(share_bytes=MIB).make(tmp_path, [5, 150, 1], seed=3)
    object_store.put_folder(bucket, tmp_path)
    there = open_path(f"s3://{bucket}", reader.reading, reader.columns, seed=3)
    expected = pa.Table.from_batches(here)
    here.set_epoch(0)
    first = take(here, 1)
    there.load_state_dict(json.loads(json.dumps(here.state_dict())))

    assert pa.Table.from_batches([*first, *there]).equals(expected)
    there.set_epoch(0)
    assert pa.Table.from_batches(there).equals(expected)


def test_the_store_is_stopped_in_the_middle(monkeypatch: pytest.MonkeyPatch) -> None:
    # The pauses between attempts grow, and last seconds.
    monkeypatch.setattr(storage, "MAX_ATTEMPTS", 2)
    store = ObjectStore()
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    lines = (f"{number},{'x' * 100}\n" for number in range(50_000))
    store.put("middle", {"a.csv": ("number,text\n" + "".join(lines)).encode()})
    batches = iter(open_path("s3://middle/a.csv", CSV_WITH_HEADER, share_bytes=2 * MIB))
    assert next(batches).column("number")[0].as_py() == 0

    store.stop()
    with pytest.raises(DataError, match=r"s3://middle/a.csv: the store cannot be reached; check the"):
        list(batches)


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
