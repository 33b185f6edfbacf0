"""A disk without room: one clear line, and nothing that looks like a store."""

import os
import resource
import shutil
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.prep.merge.batches import find_batches
from penstock.prep.merge.merge_options import MergeOptions
from penstock.prep.merge.merging import merge
from penstock.prep.merge.plan import plan_merge
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import concatenated, load_split, write_batches
from tests.readers.batch_files.samples import assert_same, game_arrays

SIZES = [4000, 6000, 2000]


@pytest.fixture
def small_disk(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"a file system cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def fill(disk, free_bytes):
    """Leave so much room on a disk, to the page."""
    ballast = disk / "ballast"
    with ballast.open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, shutil.disk_usage(disk).free - free_bytes)
    return ballast


def test_too_little_space_is_reported_before_anything_is_written(tmp_path, monkeypatch):
    write_batches(tmp_path / "in", SIZES)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=100 * KIB))

    with pytest.raises(
        DataError, match=r"the disk has 100KiB free but the merge needs 410\.2KiB, 310\.2KiB more"
    ):
        merge(tmp_path / "in", tmp_path / "not" / "there")

    assert not (tmp_path / "not").exists()


def test_a_disk_that_fills_up_meanwhile_leaves_no_store_and_the_merge_goes_on(tmp_path, small_disk):
    """Enough for the bytes but not for whole pages: the room is gone in the middle of the work."""
    batches = write_batches(tmp_path / "in", SIZES)
    plan = plan_merge(find_batches(tmp_path / "in"), MergeOptions())
    ballast = fill(small_disk, -(-plan.num_bytes // 4096) * 4096)

    with pytest.raises(
        DataError, match=r"out: cannot be written: No space left on device; no store appears there"
    ):
        merge(tmp_path / "in", small_disk / "out")
    assert [
        path.name for path in (small_disk / "out").iterdir() if not path.name.startswith(".merging-")
    ] == []
    ballast.unlink()
    merge(tmp_path / "in", small_disk / "out")

    assert_same(load_split(small_disk / "out"), concatenated(batches))


LIMITED = """
import sys
from types import SimpleNamespace
from penstock.prep.merge.merging import merge
from penstock.prep.merge.merge_options import MergeOptions
merge(sys.argv[1], sys.argv[2], options=MergeOptions(target=sys.argv[3]))
"""
NOT_WRITTEN = (
    "out: cannot be written: File too large; no store appears there. Please mend that and merge again"
)
NOT_MADE = "an empty HDF5 file of the size of train.h5 cannot be made there: File too large; mend that, or"


@pytest.mark.parametrize(
    ("target", "message"), [("npy", NOT_WRITTEN), ("parquet", NOT_WRITTEN), ("hdf5", NOT_MADE)]
)
def test_a_limit_of_file_sizes_is_told_in_one_line(tmp_path, target, message):
    if target == "hdf5":
        pytest.importorskip("h5py")
    arrays = {**game_arrays(5000), "strategic_features": np.zeros((5000, 100), np.float32)}
    (tmp_path / "in").mkdir()
    save_batch(tmp_path / "in" / "batch_0.batch", arrays)

    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path / "in"), str(tmp_path / "out"), target],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (MIB, MIB)),
    )

    last_line = done.stderr.splitlines()[-1]
    assert last_line.startswith("penstock.config.errors.DataError: ")
    assert message in last_line
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_a_disk_that_is_read_only_is_not_called_full(tmp_path, small_disk):
    write_batches(tmp_path / "in", SIZES)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)

    with pytest.raises(
        DataError, match=r"out: cannot be written to: .*disk is read-only; choose another output_dir"
    ):
        merge(tmp_path / "in", small_disk / "out")
