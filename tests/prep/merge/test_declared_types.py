"""Types that the user declared: old samples get them, arrays must have them."""

import pickle
import re

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import DeclaredTypes, MergeOptions
from penstock.prep.merge.verify import verify
from tests.prep.merge.inputs import load_split, write_batches


def write_old(folder):
    """Two files of lists of dicts; the second sample has a label that int16 does not have."""
    folder.mkdir()
    for number in range(2):
        samples = [
            {"features": [0.5, row], "labels": {"move": 40_000 * row}, "masks": {"move": [1, 0]}}
            for row in range(2)
        ]
        (folder / f"batch_{number}.pkl").write_bytes(pickle.dumps(samples))


def test_old_samples_get_the_types_that_are_declared(tmp_path):
    write_old(tmp_path / "old")
    types = DeclaredTypes(features="float16", labels={"move": "int32"}, masks="uint8")

    merge(tmp_path / "old", tmp_path / "out", options=MergeOptions(allow_pickle=True, types=types))

    found = load_split(tmp_path / "out")
    assert {name: str(array.dtype) for name, array in found.items()} == {
        "strategic_features": "float16",
        "labels_move": "int32",
        "masks_move": "uint8",
    }
    assert found["labels_move"].tolist() == [0, 40_000, 0, 40_000]
    assert verify(tmp_path / "out", tmp_path / "old", allow_pickle=True) == []


def test_undeclared_the_first_sample_says_it(tmp_path):
    write_old(tmp_path / "old")

    told = (
        r"batch_0.pkl: sample 1: labels: head 'move': 40000 does not fit int16 .*; declare another type in "
        r"preprocessing.schema.labels$"
    )
    with pytest.raises(DataError, match=told):
        merge(tmp_path / "old", tmp_path / "out", options=MergeOptions(allow_pickle=True))


def test_arrays_keep_their_types_and_must_have_those_that_are_declared(tmp_path):
    write_batches(tmp_path / "in")
    told = (
        "batch_0000.batch: array 'labels_target' is int16 per sample, not int32 per sample, as schema or dtype say; "
        "arrays keep their types in a merge: leave these out, or write the batch files again"
    )

    with pytest.raises(ConfigError, match=re.escape(told)):
        merge(
            tmp_path / "in",
            tmp_path / "out",
            options=MergeOptions(types=DeclaredTypes(labels={"target": "int32"})),
        )
    same = DeclaredTypes(features="float32", labels={"target": "int16"})
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(types=same))
    assert load_split(tmp_path / "out")["labels_target"].dtype == np.int16


def test_a_head_that_is_not_there(tmp_path):
    write_batches(tmp_path / "in")

    with pytest.raises(
        ConfigError, match=r"^schema.labels: there is no head 'targt'; did you mean 'target'\?"
    ):
        merge(
            tmp_path / "in",
            tmp_path / "out",
            options=MergeOptions(types=DeclaredTypes(labels={"targt": "int16"})),
        )
