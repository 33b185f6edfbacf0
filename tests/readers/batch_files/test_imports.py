"""Whoever writes, reads or merges uncompressed batch files does not pay for Arrow's memory."""

import subprocess
import sys

SAVE_AND_LOAD = """
import sys
import numpy as np
from penstock.readers.batch_files import load_batch, save_batch
from penstock.readers.samples import BatchBuilder
from penstock.readers.store_manifest import Manifest

for layout in ("native", "npz"):
    save_batch(sys.argv[1], {"x": np.zeros(3)}, layout=layout)
    load_batch(sys.argv[1])
print([name for name in ("pyarrow", "numba", "torch") if name in sys.modules])
"""


def test_plain_batch_files_need_numpy_alone(tmp_path):
    run = subprocess.run(
        [sys.executable, "-c", SAVE_AND_LOAD, str(tmp_path / "b")], capture_output=True, text=True, check=True
    )

    assert run.stdout == "[]\n"
