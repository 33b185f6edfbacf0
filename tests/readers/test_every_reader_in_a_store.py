"""Every format reads from an object store what it reads from a disk, and goes on there after a stop."""

import gzip
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.readers import storage
from penstock.readers.sections import ReadingSection
from tests.readers.object_store import ObjectStore
from tests.readers.samples import (
    CSV_WITH_HEADER,
    flat,
    open_path,
    table_of,
    take,
    write_csv,
    write_parquet,
    write_tfrecords,
)

Write = Callable[[Path], object]
ROWS = [5, 150, 1]


def _compressed_csv(folder: Path) -> None:
    for path in write_csv(folder, ROWS).glob("*.csv"):
        Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()


def _json(folder: Path) -> None:
    lines = [json.dumps(row) + "\n" for row in table_of(0, sum(ROWS)).to_pylist()]
    (folder / "a.jsonl").write_text("".join(lines))


def _arrow(folder: Path) -> None:
    with pa.ipc.new_file(folder / "a.arrow", table_of(0, 0).schema) as writer:
        writer.write_table(table_of(0, sum(ROWS)), max_chunksize=100)


def _arrays(folder: Path) -> None:
    np.save(folder / "number.npy", np.arange(sum(ROWS)))
    np.save(folder / "weight.npy", np.zeros((sum(ROWS), 3), np.float32))


FORMATS: dict[str, tuple[Write, ReadingSection]] = {
    "parquet": (lambda folder: write_parquet(folder, ROWS, row_group_size=40), ReadingSection()),
    "csv": (lambda folder: write_csv(folder, ROWS), CSV_WITH_HEADER),
    "csv, compressed": (_compressed_csv, CSV_WITH_HEADER),
    "json": (_json, ReadingSection()),
    "tfrecord": (lambda folder: write_tfrecords(folder, ROWS), ReadingSection()),
    "tfrecord, compressed": (lambda folder: write_tfrecords(folder, ROWS, ".tfrecord.gz"), ReadingSection()),
    "arrow": (_arrow, ReadingSection()),
    "numpy": (_arrays, ReadingSection()),
}
each_format = pytest.mark.parametrize(("write", "reading"), FORMATS.values(), ids=FORMATS.keys())


_numbers = count()


@pytest.fixture
def bucket() -> str:
    """A name of its own for each test."""
    return f"every-reader-{next(_numbers)}"


@each_format
def test_rows_are_those_of_the_disk_and_resume_after_the_first_batch(
    write: Write, reading: ReadingSection, tmp_path: Path, object_store: ObjectStore, bucket: str
) -> None:
    write(tmp_path)
    object_store.put_folder(bucket, tmp_path)
    here = pa.Table.from_batches(open_path(tmp_path, reading, seed=3))

    before, after = (open_path(f"s3://{bucket}", reading, seed=3) for _ in range(2))
    first = take(before, 1)
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))

    assert pa.Table.from_batches([*first, *after]).equals(here)
    assert sorted(here["number"].to_pylist()) == list(range(156))


def test_a_position_on_the_disk_is_one_in_the_store(
    tmp_path: Path, object_store: ObjectStore, bucket: str
) -> None:
    object_store.put_folder(bucket, write_csv(tmp_path, ROWS))
    here, there = open_path(tmp_path, CSV_WITH_HEADER), open_path(f"s3://{bucket}", CSV_WITH_HEADER)

    first = flat(take(here, 1))
    there.load_state_dict(here.state_dict())

    assert first + flat(there) == list(range(156))


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
    with pytest.raises(
        DataError, match=r"s3://middle/a.csv: the store cannot be reached; check the endpoint"
    ):
        list(batches)
