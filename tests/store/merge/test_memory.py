"""The memory of a merge does not grow with the data."""

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
from penstock.store.merge import MergeOptions, SplitShares, merge

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

options = json.loads(sys.argv[3])
if options.pop("split"):
    options["splits"] = SplitShares()
start = peak()
merge(sys.argv[1], sys.argv[2], options=MergeOptions(durable=False, **options))
print(peak() - start)
"""


def peak_of_merge(inputs, outputs, options):
    command = [sys.executable, "-c", PROGRAM, str(inputs), str(outputs), json.dumps(options)]
    return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


@pytest.mark.parametrize(
    ("options", "most_bytes"),
    [
        ({"split": False}, 4 * MIB),
        ({"split": True}, 6 * MIB),
        ({"split": True, "shuffle": True, "memory_bytes": 8 * MIB}, 14 * MIB),
    ],
    ids=["plain", "split", "shuffled"],
)
def test_few_megabytes_whatever_the_number_of_samples(tmp_path, options, most_bytes):
    (tmp_path / "in").mkdir()
    features = np.random.default_rng(0).random((500, 900), np.float32)
    for number in range(40):
        save_batch(tmp_path / "in" / f"batch_{number:02d}.batch", {"strategic_features": features})

    peak = peak_of_merge(tmp_path / "in", tmp_path / "out", options)

    assert (tmp_path / "out" / "manifest.json").exists()
    assert peak <= most_bytes, f"{peak / MIB:.1f} MiB"  # of 69 MiB of data
