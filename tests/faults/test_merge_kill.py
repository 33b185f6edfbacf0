"""A merge killed with SIGKILL at random moments: the next one ends with the bytes of one that nobody disturbed."""

import pickle
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import all_bytes

pytestmark = pytest.mark.slow

OPTIONS = {
    "plain": MergeOptions(part_bytes=1 << 20),
    "splits": MergeOptions(part_bytes=1 << 20, splits=SplitShares(0.6, 0.2, 0.2), heads="npy"),
    "shuffled": MergeOptions(part_bytes=1 << 20, splits=SplitShares(), shuffle=True, memory_bytes=4 << 20),
    "parquet": MergeOptions(part_bytes=1 << 20, splits=SplitShares(), target="parquet", compression="zstd"),
    "two processes": MergeOptions(part_bytes=1 << 20, shuffle=True, workers=2, memory_bytes=8 << 20),
}
PROGRAM = """
import pickle, sys
from penstock.prep.merge.merging import merge
options = pickle.loads(bytes.fromhex(sys.argv[3]))
print("begin", flush=True)
merge(sys.argv[1], sys.argv[2], options=options)
"""
ATTEMPTS_PER_WAY = 5


@pytest.fixture(scope="module")
def batches(tmp_path_factory) -> Path:
    """40 files of 200 samples, some 30 MB."""
    folder = tmp_path_factory.mktemp("batches")
    generator = np.random.default_rng(0)
    for number in range(40):
        arrays = {
            "strategic_features": generator.random((200, 893), np.float32),
            "labels_action": generator.integers(0, 99, 200).astype(np.int16),
            "masks_action": generator.integers(0, 2, (200, 99)).astype(np.int8),
        }
        save_batch(folder / f"batch_{number:04d}.batch", arrays)
    return folder


@pytest.fixture(scope="module")
def undisturbed(batches, tmp_path_factory):
    """For each way of merging, what comes of it and the seconds it takes."""
    found = {}
    for way, options in OPTIONS.items():
        out = tmp_path_factory.mktemp("undisturbed") / "out"
        process = start(batches, out, options)
        began_at = time.perf_counter()
        assert process.wait() == 0
        found[way] = all_bytes(out), time.perf_counter() - began_at
    return found


def start(batches: Path, out: Path, options: MergeOptions) -> "subprocess.Popen[bytes]":
    """A merge in a process of its own, at the moment at which it begins."""
    command = [sys.executable, "-c", PROGRAM, str(batches), str(out), pickle.dumps(options).hex()]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"begin\n"
    return process


@pytest.mark.parametrize("attempt", range(ATTEMPTS_PER_WAY))
@pytest.mark.parametrize("way", OPTIONS)
def test_killed_at_a_random_moment(way, attempt, batches, undisturbed, tmp_path):
    expected, seconds = undisturbed[way]
    process = start(batches, tmp_path / "out", OPTIONS[way])
    time.sleep(random.Random(f"{way} {attempt}").uniform(0, seconds))
    process.kill()
    process.wait()
    if (tmp_path / "out" / "manifest.json").exists():
        assert visible(tmp_path / "out") == expected

    assert start(batches, tmp_path / "out", OPTIONS[way]).wait() == 0

    assert all_bytes(tmp_path / "out") == expected


def visible(out: Path) -> dict[str, bytes]:
    """What a reader of the store sees."""
    return {name: content for name, content in all_bytes(out).items() if not name.startswith(".")}
