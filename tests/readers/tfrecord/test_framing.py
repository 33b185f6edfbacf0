"""The index of records."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.sizes import MIB
from penstock.prep.tfrecord.write import write_tfrecord
from penstock.readers.files import list_files
from penstock.readers.text import record_index
from penstock.readers.tfrecord import framing
from penstock.readers.tfrecord.framing import index_files, record_ends, scan_file
from tests.readers.tfrecord.wire_samples import read, survey_of


@pytest.fixture(params=["a.tfrecord", "a.tfrecord.gz"])
def large(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Records of about 0.6 MiB, and one in the middle that is larger than a chunk."""
    sizes = [600_000, 600_000, 300_000, 3 * MIB, 10, 20]
    texts = [np.random.default_rng(size).integers(0, 256, size, np.uint8).tobytes() for size in sizes]
    write_tfrecord(tmp_path / request.param, pa.table({"image": pa.array(texts), "n": range(6)}))
    return tmp_path / request.param


def test_chunks_have_whole_records_of_a_mebibyte_or_one_larger_record(large: Path):
    index = scan_file(list_files(str(large))[0], checksum=0)

    assert index.num_records.tolist() == [1, 2, 1, 2]
    assert index.offsets.tolist() == [0, *np.cumsum(index.num_bytes)[:-1].tolist()]
    assert [num_bytes <= MIB for num_bytes in index.num_bytes] == [True, True, False, True]


def test_records_of_any_size_are_read(large: Path):
    table = read(large, {"image": "bytes", "n": "int64"})

    assert table["n"].to_pylist() == list(range(6))
    assert [len(image) for image in table["image"].to_pylist()] == [
        600_000,
        600_000,
        300_000,
        3 * MIB,
        10,
        20,
    ]


def test_a_compressed_file_is_one_block(large: Path):
    assert len(survey_of(large).blocks) == (1 if large.suffix == ".gz" else 4)


def test_an_index_is_kept_and_made_anew_when_the_file_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(record_index, "LEAST_KEPT_BYTES", 0)
    scanned: list[str] = []
    monkeypatch.setattr(
        framing, "scan_file", lambda file, checksum: scanned.append(file.path) or scan_file(file, checksum)
    )
    path = tmp_path / "a.tfrecord"

    def num_records(num_rows: int | None = None) -> int:
        if num_rows is not None:
            write_tfrecord(path, pa.table({"x": range(num_rows)}))
        return index_files(list_files(str(path)), tmp_path / "index")[0].total_records

    assert [num_records(5), num_records(), num_records(6), num_records()] == [5, 5, 6, 6]
    assert len(scanned) == 2
    for kept in (tmp_path / "index").iterdir():
        kept.write_bytes(kept.read_bytes()[:100])
    assert num_records() == 6
    assert len(scanned) == 3


def test_ends_of_records(tmp_path: Path):
    write_tfrecord(tmp_path / "a.tfrecord", pa.table({"x": [1, 1, 1]}))
    content = (tmp_path / "a.tfrecord").read_bytes()
    size = len(content) // 3

    assert record_ends(content).tolist() == [size, 2 * size, 3 * size]
    assert record_ends(content[: 2 * size + 12]).tolist() == [size, 2 * size, 3 * size]
    assert record_ends(content[: 2 * size + 11]).tolist() == [size, 2 * size]
    assert record_ends(b"").tolist() == []
