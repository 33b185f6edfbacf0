"""What writing and reading batch files does not cost: copies of arrays, Arrow's memory, half files on a full disk."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from penstock.config.sizes import KIB, MIB
from penstock.readers.batch_files import load_batch, read_header, save_batch


def peak_bytes(call):
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


@pytest.mark.parametrize(
    ("layout", "compression"), [("native", "none"), ("native", "zlib"), ("npz", "none"), ("npz", "zlib")]
)
def test_arrays_are_held_once(tmp_path, layout, compression):
    path, how = tmp_path / "b", {"layout": layout, "compression": compression}
    arrays = {"x": np.zeros((4000, 1000), np.float32)}

    assert peak_bytes(lambda: save_batch(path, arrays, **how)) < 512 * KIB
    assert peak_bytes(lambda: load_batch(path)) < arrays["x"].nbytes + 2 * MIB
    if compression == "none":
        assert peak_bytes(lambda: read_header(path)) < 128 * KIB
        assert peak_bytes(lambda: load_batch(path, mmap=True)) < 128 * KIB
        across = {"x": np.zeros((1000, 4000), np.float32).T}
        assert peak_bytes(lambda: save_batch(path, across, **how)) < 3 * MIB


PROGRAM = """
import resource, sys
import numpy as np
from penstock.config.errors import DataError
from penstock.readers.batch_files import load_batch, save_batch
from penstock.readers.samples import BatchBuilder

for layout in ("native", "npz"):
    save_batch(sys.argv[1], {"x": np.zeros(3)}, layout=layout)
    load_batch(sys.argv[1])
print([name for name in ("pyarrow", "numba", "torch") if name in sys.modules])

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for layout, compression in (("native", "none"), ("native", "lz4"), ("npz", "none"), ("npz", "zlib")):
    numbers = np.random.default_rng(0).random((1000, 500))
    try:
        save_batch(sys.argv[2], {"x": numbers}, layout=layout, compression=compression)
    except DataError as error:
        print(error)
"""


def test_plain_files_need_numpy_alone_and_one_that_finds_no_room_leaves_nothing(tmp_path):
    (tmp_path / "full").mkdir()
    path = tmp_path / "full" / "batch_0000.batch"
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "b"), str(path)],
        capture_output=True,
        text=True,
        check=True,
    )

    line = f"{path}: cannot be written: File too large; nothing is left of it"
    assert run.stdout.splitlines() == ["[]"] + [line] * 4
    assert not list(path.parent.iterdir())
