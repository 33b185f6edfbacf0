"""The memory of a merge does not grow with the data, whatever it is merged to, and in which order."""

import json
import subprocess
import sys

import numpy as np
import pytest

from penstock.config.sizes import MIB
from penstock.store.batch_file import save_batch

PROGRAM = """
import json, sys
from pathlib import Path
import h5py, pyarrow.parquet
from penstock.store.merge import MergeOptions, SplitShares, merge, verify

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

options = json.loads(sys.argv[3])
if "by" in options:
    options["splits"] = SplitShares(by=options.pop("by"))
start = peak()
merge(sys.argv[1], sys.argv[2], options=MergeOptions(durable=False, **options))
print(peak() - start)
"""
VERIFIED = PROGRAM.replace("print(", "assert verify(sys.argv[2], sys.argv[1]) == []\nprint(")

NUM_FILES, FILE_SAMPLES, NUM_FEATURES = 40, 500, 900
"""69 MiB in all."""

NOISE_BYTES = 4 * MIB
"""Which pages of libraries are there differs from run to run."""
SHUFFLED = {"shuffle": True, "memory_bytes": 8 * MIB}


@pytest.fixture(scope="module", params=["none", "zstd"])
def batch_files(request, tmp_path_factory):
    """A folder of batch files, and the bytes that decoding them may take beside."""
    folder = tmp_path_factory.mktemp(request.param)
    arrays = {
        "strategic_features": np.random.default_rng(0).random((FILE_SAMPLES, NUM_FEATURES), np.float32),
        "groups": np.arange(FILE_SAMPLES, dtype=np.uint64) // 10,
    }
    for number in range(NUM_FILES):
        save_batch(folder / f"batch_{number:02d}.batch", arrays, compression=request.param)
    return folder, {"none": 0, "zstd": 12 * MIB}[request.param]


@pytest.mark.parametrize(
    ("options", "most_bytes"),
    [
        ({}, 6 * MIB),
        ({"by": "sample"}, 10 * MIB),
        ({"by": "group"}, 10 * MIB),
        (SHUFFLED, 12 * MIB),
        ({**SHUFFLED, "by": "group"}, 12 * MIB),
        ({"target": "hdf5"}, 7 * MIB),
        ({"target": "ipc"}, 24 * MIB),
        ({"target": "ipc", "by": "group", **SHUFFLED}, 28 * MIB),
        ({"target": "parquet"}, 56 * MIB),
    ],
    ids=str,
)
def test_few_megabytes_whatever_the_number_of_samples(tmp_path, batch_files, options, most_bytes):
    pytest.importorskip("h5py")
    folder, decoding_bytes = batch_files

    command = [sys.executable, "-c", PROGRAM, str(folder), str(tmp_path / "out"), json.dumps(options)]
    peak_bytes = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    assert (tmp_path / "out" / "manifest.json").exists()
    assert peak_bytes <= most_bytes + decoding_bytes + NOISE_BYTES, f"{peak_bytes / MIB:.1f} MiB"


@pytest.mark.parametrize("options", [{}, {**SHUFFLED, "by": "group"}], ids=str)
def test_verifying_holds_no_more_than_merging(tmp_path, batch_files, options):
    pytest.importorskip("h5py")
    folder, decoding_bytes = batch_files

    command = [sys.executable, "-c", VERIFIED, str(folder), str(tmp_path / "out"), json.dumps(options)]
    peak_bytes = int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    assert peak_bytes <= 16 * MIB + decoding_bytes + NOISE_BYTES, f"{peak_bytes / MIB:.1f} MiB"
