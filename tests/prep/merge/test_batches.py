"""Pass 1: which batch files there are, in which order, and whether they agree."""

import pickle

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.prep.merge.batches import find_batches
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.samples import arrays_to_samples
from penstock.readers.store_manifest import InputRecord, Manifest
from penstock.readers.store_schema import StoreSchema
from tests.prep.merge.inputs import concatenated, load_split, write_batches
from tests.readers.batch_files.samples import assert_same, game_arrays


def test_files_come_in_the_order_of_their_numbers(tmp_path):
    for number in (10, 9, 1):
        save_batch(tmp_path / f"batch_{number}.batch", game_arrays(number))

    batches = find_batches(tmp_path)

    assert list(batches.names) == ["batch_1.batch", "batch_9.batch", "batch_10.batch"]
    assert batches.num_samples.tolist() == [1, 9, 10]


def test_a_manifest_says_which_files_and_in_which_order(tmp_path):
    records = [
        save_batch(tmp_path / f"batch_{number}.batch", game_arrays(number + 1, number)) for number in range(3)
    ]
    schema = read_header(tmp_path / "batch_0.batch").schema()
    Manifest((), (records[2], records[0]), schema, {}).write(tmp_path)

    batches = find_batches(tmp_path)

    assert list(batches.names) == ["batch_2.batch", "batch_0.batch"]


def test_a_file_that_the_manifest_does_not_know_is_refused(tmp_path):
    record = save_batch(tmp_path / "batch_0.batch", game_arrays(3, seed=0))
    schema = read_header(tmp_path / "batch_0.batch").schema()
    Manifest((), (record,), schema, {}).write(tmp_path)
    save_batch(tmp_path / "batch_0.batch", game_arrays(3, seed=1))

    with pytest.raises(
        DataError, match=r"batch_0.batch: is not the file that manifest.json lists; run penstock prep"
    ):
        find_batches(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"masks_target": None}, "array 'masks_target' is missing"),
        (
            {"masks_target": np.zeros((4, 2), np.int8)},
            "array 'masks_target' is int8 x 2 per sample, not int8 x 3 per",
        ),
        (
            {"labels_target": np.zeros(4, np.int64)},
            "array 'labels_target' is int64 per sample, not int16 per sample",
        ),
        ({"more": np.zeros(4)}, "array 'more' is not in the schema"),
    ],
)
def test_the_first_file_that_differs_is_named_and_how(tmp_path, change, message):
    write_batches(tmp_path, [3, 5])
    arrays = {**game_arrays(4), **change}
    save_batch(
        tmp_path / "batch_0002.batch", {name: array for name, array in arrays.items() if array is not None}
    )

    with pytest.raises(DataError, match=rf"batch_0002.batch: {message}.*unlike in batch_0000.batch"):
        merge(tmp_path, tmp_path / "out")

    assert not (tmp_path / "out").exists()


def test_the_order_of_arrays_does_not_matter(tmp_path):
    batches = [game_arrays(4, seed) for seed in range(2)]
    save_batch(tmp_path / "batch_0.batch", batches[0])
    save_batch(tmp_path / "batch_1.npz", dict(reversed(batches[1].items())), layout="npz")

    merge(tmp_path, tmp_path / "out")

    assert_same(load_split(tmp_path / "out"), concatenated(batches))


def test_a_number_that_is_there_twice_is_refused(tmp_path):
    save_batch(tmp_path / "batch_0.batch", game_arrays(4))
    save_batch(tmp_path / "batch_0.npz", game_arrays(4), layout="npz")

    with pytest.raises(DataError, match=r"batch_0.npz: is also there as batch_0.batch"):
        find_batches(tmp_path)


def test_files_of_any_name_are_taken_where_none_is_called_batch(tmp_path):
    batches = [game_arrays(size, size) for size in (4, 1, 6)]
    for name, arrays in zip(("game2.npz", "game10.npz", "game1.batch"), batches, strict=True):
        save_batch(tmp_path / name, arrays)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / ".hidden.npz").write_bytes(b"")

    found = find_batches(tmp_path)
    assert list(found.names) == ["game1.batch", "game2.npz", "game10.npz"]

    save_batch(tmp_path / "batch_0.npz", batches[0])
    found = find_batches(tmp_path)
    assert list(found.names) == ["batch_0.npz"]


def test_a_preparation_of_which_nothing_came(tmp_path):
    inputs = (InputRecord("raw/a.rep", 5, 0), InputRecord("raw/b.rep", 5, 0))
    Manifest(inputs, (), StoreSchema(()), {}).write(tmp_path)

    with pytest.raises(
        DataError,
        match=r": has no samples: penstock prep found none in 2 input files, or left them out; its log.j",
    ):
        find_batches(tmp_path)


@pytest.mark.parametrize("name", ["nowhere", "."])
def test_a_folder_without_batch_files(tmp_path, name):
    with pytest.raises(
        DataError,
        match=r"is no folder|has no batch files, whose names end in .batch, .npz, .npy, .pkl, .pickle; ",
    ):
        find_batches(tmp_path / name)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_files_of_plain_numpy(tmp_path, save):
    batches = [game_arrays(size, size) for size in (4, 1, 6)]
    batches[1]["strategic_features"] = np.asfortranarray(game_arrays(1, 9)["strategic_features"])
    batches[2]["strategic_features"] = np.asfortranarray(batches[2]["strategic_features"])
    for number, arrays in enumerate(batches):
        save(tmp_path / f"batch_{number:04d}.npz", **arrays)

    merge(tmp_path, tmp_path / "out")

    assert_same(load_split(tmp_path / "out"), concatenated(batches))


def save_pickle(path, samples):
    path.with_suffix(".pkl").write_bytes(pickle.dumps(samples))


def save_objects(path, samples):
    np.save(path.with_suffix(".npy"), np.array(samples, dtype=object), allow_pickle=True)


def save_object_archive(path, samples):
    np.savez(path.with_suffix(".npz"), samples=np.array(samples, dtype=object))


def save_packed_objects(path, samples):
    np.savez_compressed(path.with_suffix(".npz"), samples=np.array(samples, dtype=object))


@pytest.mark.parametrize(
    "options", [MergeOptions(allow_pickle=True), MergeOptions(allow_pickle=True, shuffle=True)]
)
@pytest.mark.parametrize("save", [save_pickle, save_objects, save_object_archive, save_packed_objects])
def test_lists_of_samples_give_the_same_store_as_arrays(tmp_path, save, options):
    (tmp_path / "old").mkdir()
    for number, arrays in enumerate(write_batches(tmp_path / "new", [4, 1, 6])):
        save(tmp_path / "old" / f"batch_{number}", list(arrays_to_samples(arrays)))

    merge(tmp_path / "new", tmp_path / "new-store", options=options)
    merge(tmp_path / "old", tmp_path / "old-store", options=options)

    assert_same(load_split(tmp_path / "old-store"), load_split(tmp_path / "new-store"))


@pytest.mark.parametrize("save", [save_pickle, save_objects, save_object_archive])
def test_pickles_are_refused_unless_allowed(tmp_path, save):
    save(tmp_path / "batch_0", list(arrays_to_samples(game_arrays(3))))

    with pytest.raises(DataError, match=r"batch_0.*holds pickled samples.*allow_pickle"):
        merge(tmp_path, tmp_path / "out")


def test_files_of_a_preparation_that_has_not_ended_are_refused(tmp_path):
    write_batches(tmp_path)
    (tmp_path / "preparation.json").write_text("{}")

    with pytest.raises(
        DataError, match=r"its batch files are not finished; run penstock prep, which goes on"
    ):
        find_batches(tmp_path)
