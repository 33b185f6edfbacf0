"""What is in batch files and stores, from headers, and their values by blocks."""

import json
import pickle

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.prep import contents as contents_module
from penstock.prep.contents import contents_of, read_samples
from penstock.prep.merge.merge_options import MergeOptions
from penstock.prep.merge.merging import merge
from penstock.readers.batch_files import save_batch
from penstock.readers.store_schema import ArrayNames, InputRecord, StoreManifest, sample_schema
from tests.prep.merge.inputs import concatenated, write_batches
from tests.readers.batch_files.samples import assert_same


def values_of(part):
    """All values of a part, joined, in the shape of its arrays."""
    chunks = {array.name: [] for array in part.arrays}
    for block in part.blocks:
        for name, values in block.chunks([(0, block.num_rows)]):
            chunks[name].append(values.reshape(-1))
    return {
        array.name: np.concatenate(chunks[array.name]).reshape(-1, *array.shape[1:]) for array in part.arrays
    }


@pytest.mark.parametrize(("layout", "compression"), [("native", "zstd"), ("npz", "none"), ("npz", "zlib")])
def test_a_folder_of_batch_files_is_one(tmp_path, layout, compression):
    expected = concatenated(write_batches(tmp_path, layout=layout, compression=compression))

    found = contents_of(tmp_path)

    assert (found.kind, found.facts["samples"], found.facts["batch_files"]) == ("batch files", 28, 6)
    assert_same(values_of(found.parts[0]), expected)


def test_large_arrays_are_read_by_chunks(tmp_path, monkeypatch):
    monkeypatch.setattr(contents_module, "_CHUNK_BYTES", 64)
    expected = concatenated(write_batches(tmp_path / "batches"))
    merge(tmp_path / "batches", tmp_path / "store")

    found = contents_of(tmp_path / "store").parts[0]

    assert len(found.blocks) == 28
    assert all(block.held_bytes == 64 for block in found.blocks)
    assert_same(values_of(found), expected)
    some = {name: np.concatenate([array[3:4], array[9:10]]) for name, array in expected.items()}
    samples = [(row, name, values[0].tolist()) for row, name, values in read_samples(found.blocks, [3, 9])]
    assert samples == [
        (row, name, some[name][index].tolist()) for index, row in enumerate((3, 9)) for name in some
    ]


def test_heads_are_known_by_the_names_of_the_manifest_beside(tmp_path):
    names = ArrayNames(features="x", labels="y_", masks="m_")
    record = save_batch(
        tmp_path / "batch_0.batch", {"x": np.zeros((2, 3), "f4"), "y_move": np.zeros(2, "i2")}
    )
    assert contents_of(tmp_path / "batch_0.batch").heads == ()

    schema = sample_schema(3, ["move"], {}, names=names)
    StoreManifest((InputRecord("raw/a.rep", 9, 1),), (record,), schema, {}).write(tmp_path)

    assert contents_of(tmp_path / "batch_0.batch").heads == ("move",)
    assert (contents_of(tmp_path).heads, contents_of(tmp_path).masked_heads) == (("move",), ())
    assert contents_of(tmp_path).facts["input_files"] == 1
    assert contents_of(tmp_path).warnings == ()


@pytest.mark.parametrize("name", ["clicks.parquet", "arrays.npz", "absent"])
def test_other_things_are_none(tmp_path, name):
    if name != "absent":
        (tmp_path / name).write_bytes(b"PAR1")
    (tmp_path / "manifest.json").write_text(json.dumps({"kind": "somebody's"}))

    assert contents_of(tmp_path / name) is None
    assert contents_of(tmp_path) is None


def test_a_damaged_array_is_named(tmp_path):
    path = tmp_path / "batch_0000.batch"
    save_batch(path, {"a": np.arange(8), "b": np.arange(8)})
    content = bytearray(path.read_bytes())
    content[-64] ^= 1
    path.write_bytes(content)

    with pytest.raises(DataError, match="array 'b' is damaged: its checksum is"):
        values_of(contents_of(path).parts[0])


def test_pickled_samples_are_not_unpickled(tmp_path):
    samples = [{"features": [1.0], "labels": {"move": 1}, "masks": {}}]
    np.savez(tmp_path / "batch_0000.npz", samples=np.array(samples, object))
    (tmp_path / "batch_0001.batch").write_bytes(pickle.dumps(samples))
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(samples))

    for name in (".", "batch_0000.npz", "batch_0001.batch", "old.pkl"):
        with pytest.raises(DataError, match=r": holds pickled samples, .* penstock merge --allow-pickle"):
            contents_of(tmp_path / name)


def test_files_that_a_manifest_lists_must_be_there_and_whole(tmp_path):
    write_batches(tmp_path / "batches")
    merge(tmp_path / "batches", tmp_path / "store")
    features = tmp_path / "store" / "X_train.npy"
    features.write_bytes(features.read_bytes()[:-1])

    with pytest.raises(
        DataError, match=r"X_train\.npy: has 799 bytes, but manifest\.json says 800; run penstock"
    ):
        contents_of(tmp_path / "store")
    features.unlink()
    with pytest.raises(
        DataError, match=r"X_train\.npy: is missing, but manifest\.json lists it; run penstock"
    ):
        contents_of(tmp_path / "store")


def test_a_damaged_parquet_file_is_one_line(tmp_path):
    write_batches(tmp_path / "batches")
    merge(tmp_path / "batches", tmp_path / "store", options=MergeOptions(target="parquet"))
    path = tmp_path / "store" / "train" / "part-00000.parquet"
    path.write_bytes(bytes(path.stat().st_size))

    with pytest.raises(
        DataError, match=r"part-00000\.parquet: cannot be read: [^\n]+; run penstock merge again$"
    ):
        contents_of(tmp_path / "store")


def test_a_preparation_that_has_not_ended_is_told(tmp_path):
    write_batches(tmp_path)
    (without_manifest,) = contents_of(tmp_path).warnings
    (tmp_path / "preparation.json").write_text("{}")

    (unfinished,) = contents_of(tmp_path).warnings

    assert without_manifest.startswith("there is no manifest.json, so these may not be all")
    assert unfinished == (
        "the preparation has not finished: these are not all; run penstock prep, which goes on with them"
    )
