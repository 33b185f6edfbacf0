"""Batch files of old: recognised, refused, and with leave converted; what a pickle asks for is not run."""

import pickle

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.readers.batch_files import is_pickled, load_batch, read_header, save_batch
from penstock.readers.samples import arrays_to_samples
from tests.readers.batch_files.samples import assert_same, game_arrays


def of_lists():
    return list(arrays_to_samples(game_arrays()))


def of_arrays():
    return [
        {
            "features": np.array(sample["features"]),
            "labels": {head: np.int64(label) for head, label in sample["labels"].items()},
            "masks": {head: np.array(mask, bool) for head, mask in sample["masks"].items()},
        }
        for sample in of_lists()
    ]


def side_by_side():
    return [
        {
            "strategic_features": sample["features"],
            **{f"labels_{head}": label for head, label in sample["labels"].items()},
            **{f"masks_{head}": mask for head, mask in sample["masks"].items()},
        }
        for sample in of_lists()
    ]


def save_pickle(path, samples):
    path.write_bytes(pickle.dumps(samples))


def save_npy(path, samples):
    with path.open("wb") as stream:
        np.save(stream, np.array(samples, dtype=object), allow_pickle=True)


def save_npz(path, samples):
    with path.open("wb") as stream:
        np.savez(stream, samples=np.array(samples, dtype=object))


def save_compressed(path, samples):
    with path.open("wb") as stream:
        np.savez_compressed(stream, samples)


def save_parts(path, samples):
    parts = {key: np.array([sample[key] for sample in samples], dtype=object) for key in samples[0]}
    with path.open("wb") as stream:
        np.savez(stream, **parts)


def lists_of_dicts():
    """Features, labels and masks of all samples, each in dicts with the names of arrays."""
    parts = {"features": [], "labels": [], "masks": []}
    for sample in of_lists():
        parts["features"].append({"strategic_features": sample["features"]})
        for part in ("labels", "masks"):
            parts[part].append({f"{part}_{head}": value for head, value in sample[part].items()})
    return parts


def named_as_arrays():
    samples = of_lists()
    parts = {part: [sample[part] for sample in samples] for part in ("labels", "masks")}
    return {"strategic_features": [sample["features"] for sample in samples], **parts}


def three_lists():
    samples = of_lists()
    return tuple([sample[part] for sample in samples] for part in ("features", "labels", "masks"))


def save_lists(path, parts):
    with path.open("wb") as stream:
        np.savez(stream, **{key: np.array(values, dtype=object) for key, values in parts.items()})


EVERY_FILE = [
    (save_lists, lists_of_dicts),
    (save_lists, named_as_arrays),
    (save_pickle, lists_of_dicts),
    (save_pickle, three_lists),
    (save_pickle, of_arrays),
    (save_npy, side_by_side),
    (save_npz, of_lists),
    (save_compressed, side_by_side),
    (save_parts, of_lists),
    (save_parts, of_arrays),
]


@pytest.mark.parametrize(("save", "make"), EVERY_FILE)
def test_old_files_are_recognised_and_converted_with_leave(tmp_path, save, make):
    path = tmp_path / "batch_0000"
    save(path, make())

    assert is_pickled(path)
    with pytest.raises(DataError, match=r"batch_0000: holds pickled samples, .* --allow-pickle"):
        load_batch(path)
    assert_same(load_batch(path, allow_pickle=True), game_arrays())


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_every_protocol_and_the_modules_of_older_numpy(tmp_path, protocol):
    old = pickle.dumps(of_arrays(), protocol).replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    (tmp_path / "old.pkl").write_bytes(old if protocol == 2 else pickle.dumps(of_arrays(), protocol))

    assert_same(load_batch(tmp_path / "old.pkl", allow_pickle=True), game_arrays())


def test_parts_side_by_side_may_be_of_numbers(tmp_path):
    samples = of_lists()
    features = np.array([sample["features"] for sample in samples], np.float32, order="F")
    parts = {key: np.array([sample[key] for sample in samples], object) for key in ("labels", "masks")}
    np.savez(tmp_path / "old.npz", features=features, **parts)

    assert_same(load_batch(tmp_path / "old.npz", allow_pickle=True), game_arrays())

    np.savez(tmp_path / "old.npz", features=features[:-1], **parts)
    with pytest.raises(DataError, match=r"old\.npz: its parts have different numbers of samples:"):
        load_batch(tmp_path / "old.npz", allow_pickle=True)


def test_heads_stand_by_themselves_beside_those_of_all_samples(tmp_path):
    """The labels that all samples share stay as they are."""
    shared = {"move": 7}
    samples = [{"features": [0.5], "labels": shared, "labels_target": number} for number in range(3)]
    save_pickle(tmp_path / "old.pkl", samples)

    loaded = load_batch(tmp_path / "old.pkl", allow_pickle=True)

    assert loaded["labels_move"].tolist() == [7, 7, 7]
    assert loaded["labels_target"].tolist() == [0, 1, 2]


def test_new_files_are_none_of_old(tmp_path):
    for layout in ("native", "npz"):
        save_batch(tmp_path / "b", game_arrays(), layout=layout)
        assert not is_pickled(tmp_path / "b")
    np.save(tmp_path / "x.npy", np.zeros(3))
    with pytest.raises(DataError, match=r"x\.npy: is no batch file"):
        read_header(tmp_path / "x.npy")


@pytest.mark.parametrize("content", [{"a": 1, "b": 2}, 3, np.zeros((2, 2), object)])
def test_pickles_of_something_else(tmp_path, content):
    (tmp_path / "old.pkl").write_bytes(pickle.dumps(content))

    with pytest.raises(DataError, match=r"old\.pkl: holds no list of samples but a"):
        load_batch(tmp_path / "old.pkl", allow_pickle=True)
