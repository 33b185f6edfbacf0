"""Pass 1: which batch files there are, in which order, and whether they agree; and what is said of damaged ones."""

import os
import pickle
import re

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge import batches as reading
from penstock.prep.merge.batches import BatchReader, find_batches
from penstock.prep.merge.merge_options import DeclaredTypes, MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.samples import arrays_to_samples
from penstock.readers.store_schema import InputRecord, StoreManifest, StoreSchema
from tests.prep.merge.inputs import all_bytes, concatenated, damage, load_split, write_batches
from tests.readers.batch_files.samples import assert_same, game_arrays


def test_files_come_in_the_order_of_their_numbers(tmp_path):
    for name in ("game2.npz", "game10.npz", "game1.batch"):
        save_batch(tmp_path / name, game_arrays(3))
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".hidden.npz").write_bytes(b"")
    assert find_batches(tmp_path).names == ("game1.batch", "game2.npz", "game10.npz")

    for number in (10, 9, 1):
        save_batch(tmp_path / f"batch_{number}.batch", game_arrays(number))
    batches = find_batches(tmp_path)
    assert batches.names == ("batch_1.batch", "batch_9.batch", "batch_10.batch")
    assert batches.num_samples.tolist() == [1, 9, 10]


@pytest.fixture
def prepared(tmp_path):
    """A folder of three batch files with a manifest of two of them."""
    records = [save_batch(tmp_path / f"batch_{number}.batch", game_arrays(3, number)) for number in range(3)]
    schema = read_header(tmp_path / "batch_0.batch").schema()
    StoreManifest((), (records[2], records[0]), schema, {}).write(tmp_path)
    return tmp_path


def test_a_manifest_says_which_files_and_in_which_order(prepared):
    assert find_batches(prepared).names == ("batch_2.batch", "batch_0.batch")


PREP = "run penstock prep, which writes it again"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (damage, f"array 'masks_target' is damaged: its checksum is .*; delete that file and {PREP}$"),
        (lambda path: os.truncate(path, 99), f"; delete that file and {PREP}$"),
        (
            lambda path: path.write_bytes(b""),
            f": is no batch file, neither native nor .npz: it is empty; delete that file and {PREP}$",
        ),
        (lambda path: path.unlink(), f"batch_0.batch: is missing; {PREP}$"),
        (lambda path: save_batch(path, game_arrays(3, 9)), "is not the file that manifest.json lists; run"),
    ],
)
def test_files_that_penstock_prep_wrote_come_back_by_it(prepared, change, message):
    change(prepared / "batch_0.batch")

    with pytest.raises(DataError, match=message):
        merge(prepared, prepared / "out")


def test_files_that_nobody_prepared_are_written_again_by_whoever_wrote_them(tmp_path):
    write_batches(tmp_path)

    damage(tmp_path / "batch_0004.batch")
    with pytest.raises(DataError, match=r"array 'masks_target' is damaged: .*; write the file again$"):
        merge(tmp_path, tmp_path / "out")
    (tmp_path / "batch_0004.batch").write_bytes(b"noise")
    with pytest.raises(DataError, match=r"begins with b'noise'; write it again, or take it away$"):
        merge(tmp_path, tmp_path / "out")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masks_target": None}, "array 'masks_target' is missing"),
        (
            {"labels_target": np.zeros(4, np.int64)},
            "array 'labels_target' is int64 per sample, not int16 per",
        ),
        ({"more": np.zeros(4)}, "array 'more' is not in the schema"),
    ],
)
def test_the_first_file_that_differs_is_named_and_how(tmp_path, change, message):
    write_batches(tmp_path, [3, 5])
    arrays = {name: array for name, array in {**game_arrays(4), **change}.items() if array is not None}
    save_batch(tmp_path / "batch_0002.batch", arrays)

    with pytest.raises(DataError, match=rf"batch_0002.batch: {message}.*unlike in batch_0000.batch"):
        merge(tmp_path, tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_the_order_of_arrays_does_not_matter(tmp_path):
    batches = [game_arrays(4, seed) for seed in range(2)]
    save_batch(tmp_path / "batch_0.batch", batches[0])
    save_batch(tmp_path / "batch_1.npz", dict(reversed(batches[1].items())), layout="npz")

    merge(tmp_path, tmp_path / "out")

    assert_same(load_split(tmp_path / "out"), concatenated(batches))


def test_folders_that_cannot_be_merged(tmp_path):
    with pytest.raises(DataError, match="is no folder; intermediate_dir is where batch files are"):
        find_batches(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"has no batch files, whose names end in .batch, .npz, .npy, .pkl"):
        find_batches(tmp_path)
    for name in ("batch_0.batch", "batch_0.npz"):
        save_batch(tmp_path / name, game_arrays(4))
    with pytest.raises(DataError, match=r"batch_0.npz: is also there as batch_0.batch"):
        find_batches(tmp_path)
    (tmp_path / "preparation.json").write_text("{}")
    with pytest.raises(
        DataError, match=r"its batch files are not finished; run penstock prep, which goes on"
    ):
        find_batches(tmp_path)
    inputs = (InputRecord("raw/a.rep", 5, 0), InputRecord("raw/b.rep", 5, 0))
    StoreManifest(inputs, (), StoreSchema(()), {}).write(tmp_path)
    with pytest.raises(
        DataError, match=r"has no samples: penstock prep found none in 2 input files, or left"
    ):
        find_batches(tmp_path)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_of_plain_numpy(tmp_path, save):
    batches = [game_arrays(size, size) for size in (4, 1, 6)]
    batches[2]["strategic_features"] = np.asfortranarray(batches[2]["strategic_features"])
    for number, arrays in enumerate(batches):
        save(tmp_path / f"batch_{number:04d}.npz", **arrays)

    merge(tmp_path, tmp_path / "out")

    assert_same(load_split(tmp_path / "out"), concatenated(batches))


def save_pickle(path, samples):
    path.with_suffix(".pkl").write_bytes(pickle.dumps(samples))


def save_packed_objects(path, samples):
    np.savez_compressed(path.with_suffix(".npz"), samples=np.array(samples, dtype=object))


@pytest.mark.parametrize("save", [save_pickle, save_packed_objects])
def test_lists_of_samples_give_the_same_store_as_arrays(tmp_path, save):
    (tmp_path / "old").mkdir()
    for number, arrays in enumerate(write_batches(tmp_path / "new", [4, 1, 6])):
        save(tmp_path / "old" / f"batch_{number}", list(arrays_to_samples(arrays)))
    options = MergeOptions(allow_pickle=True, shuffle=True)

    merge(tmp_path / "new", tmp_path / "new-store", options=options)
    merge(tmp_path / "old", tmp_path / "old-store", options=options)

    assert_same(load_split(tmp_path / "old-store"), load_split(tmp_path / "new-store"))
    with pytest.raises(DataError, match=r"batch_0.*holds pickled samples.*allow_pickle"):
        merge(tmp_path / "old", tmp_path / "out")


def test_old_samples_get_the_types_that_are_declared(tmp_path):
    samples = [
        {"features": [0.5], "labels": {"move": label}, "masks": {"move": [1]}} for label in (0, 40_000)
    ]
    save_pickle(tmp_path / "batch_0", samples)
    types = DeclaredTypes(features="float16", labels={"move": "int32"}, masks="uint8")

    with pytest.raises(
        DataError, match=r"batch_0.pkl: sample 1: .* declare another type in preprocessing.sch"
    ):
        merge(tmp_path, tmp_path / "out", options=MergeOptions(allow_pickle=True))
    merge(tmp_path, tmp_path / "out", options=MergeOptions(allow_pickle=True, types=types))

    found = load_split(tmp_path / "out")
    assert [str(array.dtype) for array in found.values()] == ["float16", "int32", "uint8"]
    assert found["labels_move"].tolist() == [0, 40_000]
    assert verify(tmp_path / "out", tmp_path, allow_pickle=True) == []


def test_arrays_keep_their_types_and_must_have_those_that_are_declared(tmp_path):
    write_batches(tmp_path / "in")

    def merge_as(**types):
        options = MergeOptions(types=DeclaredTypes(**types))
        return merge(tmp_path / "in", tmp_path / "out", options=options)

    message = (
        "batch_0000.batch: array 'labels_target' is int16 per sample, not int32 per sample, as schema or dtype say; "
        "arrays keep their types in a merge: leave these out, or write the batch files again"
    )
    with pytest.raises(ConfigError, match=re.escape(message)):
        merge_as(labels={"target": "int32"})
    with pytest.raises(
        ConfigError, match=r"^schema.labels: there is no head 'targt'; did you mean 'target'\?"
    ):
        merge_as(labels={"targt": "int16"})
    merge_as(features="float32", labels={"target": "int16"})
    assert load_split(tmp_path / "out")["labels_target"].dtype == np.int16


@pytest.mark.parametrize("splits", [None, SplitShares()])
@pytest.mark.parametrize("shuffle", [False, True])
def test_files_that_are_read_in_pieces_give_the_same_bytes(tmp_path, splits, shuffle, monkeypatch):
    write_batches(tmp_path / "in")
    options = MergeOptions(splits=splits, shuffle=shuffle)
    merge(tmp_path / "in", tmp_path / "at_once", options=options)
    monkeypatch.setattr(reading, "_SMALL_FILE_BYTES", 0)
    monkeypatch.setattr(reading, "BUFFER_BYTES", 50)

    merge(tmp_path / "in", tmp_path / "in_pieces", options=options)

    assert all_bytes(tmp_path / "in_pieces") == all_bytes(tmp_path / "at_once")
    damage(tmp_path / "in" / "batch_0004.batch")
    with pytest.raises(DataError, match="array 'masks_target' is damaged"):
        merge(tmp_path / "in", tmp_path / "damaged", options=options)


def test_a_batch_file_that_changes_meanwhile_is_noticed(tmp_path):
    write_batches(tmp_path)
    batches = find_batches(tmp_path)
    path = tmp_path / "batch_0001.batch"
    before_ns = path.stat().st_mtime_ns
    save_batch(path, game_arrays(7, seed=99))
    # Clocks of file systems tick every few milliseconds: both files may be of the same moment otherwise.
    os.utime(path, ns=(before_ns, before_ns + 1_000_000_000))

    with pytest.raises(DataError, match=r"batch_0001.batch: was changed while it was merged"):
        BatchReader(batches, 1)
