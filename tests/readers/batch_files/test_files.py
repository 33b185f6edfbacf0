"""Batch files: what is saved is loaded, in every layout and compression, and headers tell where it lies."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy

from penstock.config.errors import ConfigError, DataError
from penstock.readers.batch_files import load_batch, read_header, save_batch
from tests.readers.batch_files.samples import assert_same, game_arrays

EVERY_WAY = [
    ("native", "none", None),
    ("native", "zlib", 9),
    ("native", "zstd", 9),
    ("native", "lz4", None),
    ("npz", "none", None),
    ("npz", "zlib", 1),
]
every_way = pytest.mark.parametrize(("layout", "compression", "level"), EVERY_WAY)


@every_way
def test_what_is_saved_is_loaded_and_the_same_arrays_give_the_same_bytes(
    tmp_path, layout, compression, level
):
    options = {"layout": layout, "compression": compression, "level": level}
    arrays, path = game_arrays(300), tmp_path / "batch_0000"
    record = save_batch(path, arrays, **options)
    save_batch(tmp_path / "again", arrays, **options)
    plain = save_batch(tmp_path / "plain", arrays)

    assert_same(load_batch(path), arrays)
    if layout == "npz":
        with np.load(path) as by_numpy:
            assert_same(dict(by_numpy), arrays)
    assert all(array.flags.writeable for array in load_batch(path).values())
    assert path.read_bytes() == (tmp_path / "again").read_bytes()
    assert record == read_header(path).record
    assert (record.name, record.num_samples, record.num_bytes) == ("batch_0000", 300, path.stat().st_size)
    # The checksum is of the content, whatever the layout.
    assert record.checksum == plain.checksum
    assert save_batch(tmp_path / "other", game_arrays(seed=1), **options).checksum != plain.checksum
    assert len(list(tmp_path.iterdir())) == 4


@every_way
@settings(max_examples=20)
@given(
    array=st_numpy.arrays(
        dtype=st.sampled_from(["<f4", "<f2", ">i4", "i1", "?", "<u8", "<U3", "<M8[s]"]),
        shape=st_numpy.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5),
    )
)
def test_any_array_of_plain_values(tmp_path_factory, layout, compression, level, array):
    path = tmp_path_factory.mktemp("any") / "batch"
    save_batch(path, {"x": array}, layout=layout, compression=compression, level=level)

    loaded = load_batch(path)["x"]

    assert (loaded.dtype, loaded.shape) == (array.dtype, array.shape)
    assert loaded.tobytes() == array.tobytes()


@pytest.mark.parametrize("layout", ["native", "npz"])
def test_the_bytes_of_an_array_lie_where_the_header_says(tmp_path, layout):
    whole = np.arange(600_000, dtype=np.float32).reshape(1000, 600)
    arrays = {"columns": np.asfortranarray(whole), "part": whole[:, ::7], "backward": whole[::-1, 0]}
    save_batch(tmp_path / "b", arrays, layout=layout)
    content = (tmp_path / "b").read_bytes()

    for name, stored in read_header(tmp_path / "b").arrays.items():
        assert stored.is_copyable
        assert content[stored.offset : stored.offset + stored.num_bytes] == arrays[name].tobytes()
        assert layout == "npz" or stored.offset % 64 == 0
    mapped = load_batch(tmp_path / "b", mmap=True)
    assert_same(mapped, arrays)
    assert all(isinstance(array, np.memmap) for array in mapped.values())


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_what_numpy_writes_is_read(tmp_path, save):
    arrays = game_arrays() | {"columns": np.asfortranarray(game_arrays()["strategic_features"])}
    save(tmp_path / "batch_0000.npz", **arrays)

    header = read_header(tmp_path / "batch_0000.npz")

    assert_same(load_batch(tmp_path / "batch_0000.npz"), arrays)
    assert header.num_samples == 5
    assert not header.arrays["columns"].is_copyable
    is_stored = save is np.savez
    assert header.arrays["labels_target"].compression == ("none" if is_stored else "zlib")
    assert header.arrays["labels_target"].is_copyable == is_stored


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "hdf5"}, "layout is 'hdf5'; known: native, npz"),
        ({"compression": "gzip"}, "compression is 'gzip'; known: none, zlib, zstd, lz4"),
        ({"compression": "zlib", "level": 10}, "compression level is 10; zlib has 0 to 9"),
        ({"level": 3}, "compression level 3 without compression changes nothing"),
        ({"layout": "npz", "compression": "zstd"}, "layout npz cannot have compression zstd"),
    ],
)
def test_settings_that_cannot_be(tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        save_batch(tmp_path / "b", game_arrays(), **options)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "there are no arrays to write"),
        ({"x": np.zeros(3), "y": np.zeros(4)}, "array 'x' has 3 samples but 'y' has 4"),
        ({"x": [[1], [2, 3]]}, "array 'x' has rows of different lengths"),
        ([np.zeros(3)], "arrays have type list; give a dict from names to arrays"),
        ({"x": np.array([{"features": []}])}, "array 'x' has dtype object; give numbers"),
    ],
)
def test_arrays_that_cannot_be_written(tmp_path, arrays, message):
    with pytest.raises(DataError, match=message):
        save_batch(tmp_path / "b", arrays)

    assert not list(tmp_path.iterdir())
