"""Batch files of every size are copied byte by byte, and checked."""

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.prep.merge import batches as reading
from penstock.prep.merge.batches import BatchReader, find_batches
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from tests.prep.merge.inputs import all_bytes, write_batches
from tests.prep.merge.test_continuing import damage


def read_as_large(monkeypatch):
    """From now on no file is small, and a few bytes are read at a time."""
    monkeypatch.setattr(reading, "_SMALL_FILE_BYTES", 0)
    monkeypatch.setattr(reading, "BUFFER_BYTES", 50)


@pytest.fixture(params=["small", "large"])
def size(request, monkeypatch):
    """Files are read at once, or piece by piece."""
    if request.param == "large":
        read_as_large(monkeypatch)


@pytest.mark.parametrize("splits", [None, SplitShares()])
@pytest.mark.parametrize("shuffle", [False, True])
def test_the_size_of_files_changes_no_byte(tmp_path, splits, shuffle, monkeypatch):
    write_batches(tmp_path / "in")
    options = MergeOptions(splits=splits, shuffle=shuffle, durable=False)
    merge(tmp_path / "in", tmp_path / "small", options=options)
    read_as_large(monkeypatch)

    merge(tmp_path / "in", tmp_path / "large", options=options)

    assert all_bytes(tmp_path / "large") == all_bytes(tmp_path / "small")


@pytest.mark.usefixtures("size")
def test_arrays_come_in_pieces_or_by_samples(tmp_path):
    written = write_batches(tmp_path, [9])[0]["strategic_features"]
    batches = find_batches(tmp_path)

    with BatchReader(batches, 0) as reader:
        pieces = b"".join(rows.tobytes() for _, rows in reader.chunks(0))
    with BatchReader(batches, 0) as reader:
        rows = [reader.rows(0, first, 3).tobytes() for first in (0, 3, 6)]

    assert pieces == b"".join(rows) == np.ascontiguousarray(written).tobytes()


@pytest.mark.usefixtures("size")
def test_damage_is_noticed_when_the_last_sample_was_read(tmp_path):
    write_batches(tmp_path, [9])
    batches = find_batches(tmp_path)
    damage(tmp_path / "batch_0000.batch")
    column = [spec.name for spec in batches.schema.arrays].index("masks_target")

    with pytest.raises(DataError, match="array 'masks_target' is damaged"), BatchReader(batches, 0) as reader:
        list(reader.chunks(column))
