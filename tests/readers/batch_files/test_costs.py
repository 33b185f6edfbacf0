"""What writing and reading batch files does not cost: copies of arrays, and half files on a full disk."""

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


@pytest.mark.parametrize(("layout", "compression"), [("native", "none"), ("npz", "none"), ("npz", "zlib")])
def test_writing_makes_no_copy(tmp_path, layout, compression):
    arrays = {"x": np.zeros((4000, 1000), np.float32)}

    peak = peak_bytes(lambda: save_batch(tmp_path / "b", arrays, layout=layout, compression=compression))

    assert peak < 512 * KIB


@pytest.mark.parametrize("layout", ["native", "npz"])
def test_arrays_that_lie_otherwise_are_copied_piece_by_piece(tmp_path, layout):
    arrays = {"x": np.zeros((1000, 4000), np.float32).T}

    assert peak_bytes(lambda: save_batch(tmp_path / "b", arrays, layout=layout)) < 3 * MIB


@pytest.mark.parametrize("layout", ["native", "npz"])
def test_headers_and_mapped_arrays_take_next_to_nothing(tmp_path, layout):
    save_batch(tmp_path / "b", {"x": np.zeros((4000, 1000), np.float32)}, layout=layout)

    assert peak_bytes(lambda: read_header(tmp_path / "b")) < 128 * KIB
    assert peak_bytes(lambda: load_batch(tmp_path / "b", mmap=True)) < 128 * KIB


@pytest.mark.parametrize(
    ("layout", "compression"), [("native", "none"), ("native", "zlib"), ("npz", "none"), ("npz", "zlib")]
)
def test_a_loaded_array_is_held_once(tmp_path, layout, compression):
    arrays = {"x": np.zeros((4000, 1000), np.float32)}
    save_batch(tmp_path / "b", arrays, layout=layout, compression=compression)

    peak = peak_bytes(lambda: load_batch(tmp_path / "b"))

    assert peak < arrays["x"].nbytes + 2 * MIB


FILL_THE_DISK = """
import resource, sys
import numpy as np
from penstock.config.errors import DataError
from penstock.readers.batch_files import save_batch

resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
for layout, compression in (("native", "none"), ("native", "lz4"), ("npz", "none"), ("npz", "zlib")):
    numbers = np.random.default_rng(0).random((1000, 500))
    try:
        save_batch(sys.argv[1], {"x": numbers}, layout=layout, compression=compression)
    except DataError as error:
        print(error)
"""


def test_a_file_that_finds_no_room_is_an_error_and_leaves_nothing(tmp_path):
    path = tmp_path / "batch_0000.batch"
    run = subprocess.run(
        [sys.executable, "-c", FILL_THE_DISK, str(path)], capture_output=True, text=True, check=True
    )

    line = f"{path}: cannot be written: File too large; nothing is left of it"
    assert run.stdout.splitlines() == [line] * 4
    assert not list(tmp_path.iterdir())
