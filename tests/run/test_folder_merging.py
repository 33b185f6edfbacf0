"""penstock.merge: the keys of run files as arguments."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.prep.sections import Preprocessing
from tests.prep.merge.inputs import all_bytes, concatenated, load_split, write_batches
from tests.prep.raw import enter_folder
from tests.readers.batch_files.samples import assert_same


def test_everything_is_train_unless_splits_are_given(tmp_path: Path):
    batches = write_batches(tmp_path / "in")

    result = penstock.merge(tmp_path / "in", tmp_path / "out")

    assert result.num_samples == {"train": 28}
    assert_same(load_split(tmp_path / "out"), concatenated(batches))


def test_what_a_run_file_says_can_be_said_here(tmp_path: Path):
    write_batches(tmp_path / "in", groups=True)

    result = penstock.merge(
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        splits={"train": 0.5, "val": 0.5, "test": 0.0, "by": "group"},
        shuffle=True,
        seed=7,
        target="parquet",
        compression="zstd",
        compression_level=3,
        merge_workers=2,
        memory_limit="64MiB",
    )

    assert result.num_samples.keys() == {"train", "val"}
    assert sorted(path.parent.name for path in (tmp_path / "out").rglob("*.parquet")) == ["train", "val"]


def test_its_arguments_are_called_like_the_keys_of_run_files():
    arguments = {*inspect.signature(penstock.merge).parameters}
    keys = {field.alias or name for name, field in Preprocessing.model_fields.items()}

    own = {"strategy", "memory_limit", "allow_pickle", "replace", "restart", "progress"}
    assert arguments - own <= keys
    told = inspect.getdoc(penstock.merge)
    assert [name for name in arguments - {"intermediate_dir", "output_dir"} if f"{name}" not in told] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"splits": {"tran": 0.8}}, "splits.tran: unknown key; did you mean 'train'?"),
        (
            {"splits": {"train": 0.8, "val": 0.3}},
            "splits: train, val and test add up to 1.2; they must add up to 1",
        ),
        ({"merge_workers": 0}, "merge_workers: is 0; must be greater than 0"),
        ({"target": "cvs"}, "target: is 'cvs'; known: hdf5, ipc, npy, parquet"),
        ({"compression": "zstd"}, "compression: zstd is not for target npy; leave it out"),
        ({"memory_limit": "much"}, "memory_limit: is 'much'; expected a size such as 4GiB"),
        ({"progress": False}, "progress: is False; it must be a penstock.ProgressLogger or None"),
        ({"strategy": "all"}, "merge_strategy: is 'all'; known: accumulative, sequential"),
    ],
)
def test_wrong_arguments_are_told_as_in_run_files(tmp_path: Path, arguments: dict[str, Any], message: str):
    write_batches(tmp_path / "in")

    with pytest.raises(penstock.ConfigError, match=re.escape(message)):
        penstock.merge(tmp_path / "in", tmp_path / "out", **arguments)


def test_another_store_is_replaced_only_knowingly(tmp_path: Path):
    write_batches(tmp_path / "in")
    shares = {"train": 0.8, "val": 0.1, "test": 0.1}
    penstock.merge(tmp_path / "in", tmp_path / "out", splits=shares)
    before = all_bytes(tmp_path / "out")

    with pytest.raises(
        penstock.ConfigError, match=r"out: holds a store with other splits; write over it with rep"
    ):
        penstock.merge(tmp_path / "in", tmp_path / "out")
    assert all_bytes(tmp_path / "out") == before

    assert penstock.merge(tmp_path / "in", tmp_path / "out", replace=True).replaced == "other splits"
    assert not (tmp_path / "out" / "X_val.npy").exists()


def test_pickles_where_they_are_allowed(tmp_path: Path):
    (tmp_path / "in").mkdir()
    samples = [{"features": [1.0, row], "labels": {"move": row}} for row in range(3)]
    np.savez(tmp_path / "in" / "batch_0.npz", samples=np.array(samples, dtype=object))

    penstock.merge(tmp_path / "in", tmp_path / "out", allow_pickle=True)

    assert np.load(tmp_path / "out" / "X_train.npy").tolist() == [[1, 0], [1, 1], [1, 2]]


def test_an_unfinished_preparation_is_not_merged(tmp_path: Path):
    write_batches(tmp_path / "in")
    (tmp_path / "in" / "preparation.json").write_text("{}")

    with pytest.raises(penstock.DataError, match=r"in: its batch files are not finished; run penstock prep"):
        penstock.merge(tmp_path / "in", tmp_path / "out")


def test_no_store_among_the_raw_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    enter_folder(tmp_path, monkeypatch)
    penstock.prepare("prep.yaml", merge=False)

    with pytest.raises(
        penstock.ConfigError, match=r"^output_dir: \S+raw holds the raw file raw/game_0.txt; choose"
    ):
        penstock.merge("batches", tmp_path / "raw")
