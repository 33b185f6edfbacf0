"""Where a store will go is looked at before the first sample."""

from pathlib import Path
from typing import Any

import pytest

from penstock.config.errors import ConfigError
from penstock.prep.merge.merging import merge
from penstock.prep.preparing.output_place import check_output_place
from penstock.prep.preparing.preparing import look_at, prepare
from penstock.prep.sections import Preprocessing
from tests.prep.preparing.raw import content, section, write_games

SPLITS = {"train": 0.5, "val": 0.5, "test": 0}


def to(output_dir: str, **keys: Any) -> Preprocessing:
    """What to prepare, with batch files in the folder `batches`."""
    folders = {"intermediate_dir": "batches", "output_dir": output_dir}
    return Preprocessing.model_validate(
        {"input_path": "raw", "extract": "rawgame:samples", **folders, **keys}
    )


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The current folder is empty."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("folders", "problem"),
    [
        (to("batches/"), "output_dir: batches/ is also intermediate_dir; choose another folder"),
        (
            to("batches/store"),
            "output_dir: batches/store lies in batches, the intermediate_dir; choose one outside of it",
        ),
        (to("."), "intermediate_dir: batches lies in ., the output_dir; choose one outside of it"),
    ],
)
def test_batch_files_and_store_are_apart(folders: Preprocessing, problem: str):
    with pytest.raises(ConfigError) as error:
        check_output_place(folders)

    assert str(error.value) == f"preprocessing.{problem}"


def test_a_link_to_the_same_folder():
    Path("batches").mkdir()
    Path("link").symlink_to("batches")

    with pytest.raises(ConfigError, match="link is also intermediate_dir"):
        check_output_place(to("link"))


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("X_train.npy", {}),
        ("labels_train.npz", {}),
        ("X_val.npy", {"splits": SPLITS}),
        ("X_units_train.npy", {"schema": {"feature_groups": {"units": 3}}}),
        ("masks_train/move.npy", {"heads": "npy"}),
        ("train.h5", {"target": "hdf5"}),
        ("train", {"target": "parquet"}),
    ],
)
def test_files_of_others_are_not_written_over(name: str, keys: dict[str, Any]):
    Path("store", name).parent.mkdir(parents=True)
    Path("store", name).write_bytes(b"")

    with pytest.raises(ConfigError) as error:
        check_output_place(to("store", **keys))

    assert str(error.value).startswith("preprocessing.output_dir: store")
    assert name in str(error.value)


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("X_val.npy", {}),
        ("X_test.npy", {"splits": SPLITS}),
        ("X_train.npy", {"target": "hdf5"}),
        ("notes.txt", {}),
        (".merging-1/manifest.json", {}),
    ],
)
def test_files_that_are_in_nobodys_way(name: str, keys: dict[str, Any]):
    Path("store", name).parent.mkdir(parents=True)
    Path("store", name).write_bytes(b"")

    check_output_place(to("store", **keys))


def test_a_manifest_of_something_else():
    Path("store").mkdir()
    Path("store/manifest.json").write_text("{}")

    with pytest.raises(
        ConfigError, match=r"^preprocessing\.output_dir: store/manifest\.json: is damaged or no "
    ):
        check_output_place(to("store"))


def test_it_is_told_before_anything_is_written_and_only_where_a_merge_follows(desk: Path):
    write_games(desk / "raw", [3])
    inner = section(desk, output_dir=str(desk / "batches" / "store"))
    before = content(desk)

    for attempt in (lambda: prepare(inner, merges=True), lambda: look_at(inner)):
        with pytest.raises(ConfigError, match=r"^preprocessing\.output_dir: .* the intermediate_dir; choose"):
            attempt()

    assert [name for name in content(desk) if "pycache" not in name] == [*before]
    assert prepare(inner).num_samples == 3


def test_a_store_of_an_earlier_merge_may_be_there(desk: Path):
    write_games(desk / "raw", [3])
    prepare(section(desk), merges=True)
    merge(desk / "batches", desk / "store")

    assert prepare(section(desk), merges=True).kept_tasks == 1
