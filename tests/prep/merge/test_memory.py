"""The memory of a merge does not grow with the data, whatever it is merged to, and in which order."""

import json
import subprocess
import sys
from functools import cache

import numpy as np
import pytest

from penstock.config.sizes import MIB
from penstock.readers.batch_files import save_batch

# Imports once; for each line it reads, it forks one that merges. That one first merges a single file, so that what
# libraries load at the first use is there before anything is measured.
PROGRAM = """
import json, os, sys
from pathlib import Path
import h5py, pyarrow.parquet
from penstock.prep.merge.merging import merge
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.verify import verify

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

def run(source, target, options):
    if "by" in options:
        options["splits"] = SplitShares(by=options.pop("by"))
    options = MergeOptions(**options)
    for folder in (f"{source}_one", source):
        start = peak()
        merge(folder, f"{target}_{Path(folder).name}", options=options)
        if options.target in ("npy", "parquet"):
            assert verify(f"{target}_{Path(folder).name}", folder) == []
    print(peak() - start, flush=True)

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        run(*json.loads(line))
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""

NUM_FILES, FILE_SAMPLES, NUM_FEATURES = 40, 500, 900
"""69 MiB in all."""

MOST_MORE_BYTES = 32 * MIB
"""Above what a merge of one file takes. It is 12 MiB at most, and who held all samples would take 67. What is between
them is for the machine: the kernel adds up the pages of each core now and then, and allocators keep spare ones."""
SHUFFLED = {"shuffle": True, "memory_bytes": 8 * MIB}


@pytest.fixture(scope="module")
def peak_of():
    """The bytes by which the peak of a process grows that merges a folder, and verifies arrays and Parquet."""
    pytest.importorskip("h5py")
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:

        def measure(source, target, options):
            program.stdin.write(json.dumps([str(source), str(target), options]) + "\n")
            program.stdin.flush()
            return int(program.stdout.readline())

        yield measure
        program.stdin.close()


@pytest.fixture(scope="module")
def batch_files(tmp_path_factory):
    """A folder of batch files by their compression; beside it is one of a single file."""

    @cache
    def written(compression):
        parent = tmp_path_factory.mktemp(compression)
        arrays = {
            "strategic_features": np.random.default_rng(0).random((FILE_SAMPLES, NUM_FEATURES), np.float32),
            "groups": np.arange(FILE_SAMPLES, dtype=np.uint64) // 10,
        }
        for folder, num_files in (("all", NUM_FILES), ("all_one", 1)):
            (parent / folder).mkdir()
            for number in range(num_files):
                save_batch(parent / folder / f"batch_{number:02d}.batch", arrays, compression=compression)
        return parent / "all"

    return written


@pytest.mark.parametrize(
    ("compression", "options"),
    [
        ("none", {}),
        ("none", SHUFFLED),
        ("none", {"target": "hdf5"}),
        ("none", {"target": "ipc"}),
        ("none", {"target": "ipc", "by": "group", **SHUFFLED}),
        ("none", {"target": "parquet"}),
        ("zstd", {}),
        ("zstd", {**SHUFFLED, "by": "group"}),
    ],
    ids=str,
)
def test_few_megabytes_whatever_the_number_of_samples(tmp_path, peak_of, batch_files, compression, options):
    peak_bytes = peak_of(batch_files(compression), tmp_path / "out", options)

    assert (tmp_path / "out_all" / "manifest.json").exists()
    assert peak_bytes <= MOST_MORE_BYTES, f"{peak_bytes / MIB:.1f} MiB"
