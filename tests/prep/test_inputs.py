"""Raw files: which, in which order, and whether they are still the same; and the folders that may be written to."""

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.inputs import (
    OUTPUT_DIR,
    check_output_folder,
    check_store_folder,
    is_same_input,
    list_inputs,
    mark_input,
)
from penstock.prep.sections import Preprocessing
from penstock.readers.files import DataFile
from tests.privileges import without_privileges
from tests.readers.object_store import ObjectStore


def make(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text(name)


def names_of(files: list[DataFile]) -> list[str]:
    return [file.name for file in files]


def test_globs_lists_and_names_with_a_comma(tmp_path: Path):
    make(tmp_path, "a2", "a10", "b1", "c,d")

    files = list_inputs(f"{tmp_path}/b1, {tmp_path}/a*", of_any_kind=True)

    assert names_of(files) == ["b1", "a2", "a10"]
    assert names_of(list_inputs(f"{tmp_path}/c,d", of_any_kind=True)) == ["c,d"]


def test_what_is_wrong_is_told(tmp_path: Path):
    make(tmp_path, "a")
    (tmp_path / "empty").mkdir()

    with pytest.raises(ConfigError, match=r"^preprocessing\.input_path: is required: raw files as a path"):
        list_inputs(" ", of_any_kind=True)
    with pytest.raises(DataError, match=r"names .*/a twice; its samples would be there twice$"):
        list_inputs(f"{tmp_path}/a,{tmp_path}/a", of_any_kind=True)
    with pytest.raises(DataError, match=r"/empty: has no files in it$"):
        list_inputs(f"{tmp_path}/empty", of_any_kind=True)
    with pytest.raises(DataError, match=r"/b: no such file or directory"):
        list_inputs(f"{tmp_path}/b", of_any_kind=True)


def test_a_file_is_the_same_while_its_bytes_are(tmp_path: Path):
    make(tmp_path, "game")
    path = tmp_path / "game"
    [file] = list_inputs(str(path), of_any_kind=True)
    record = mark_input(file)

    assert is_same_input(record, file)
    os.utime(path, ns=(1, 1))
    assert is_same_input(record, file)
    path.write_text("gaMe")
    assert not is_same_input(record, file)
    path.write_text("games")
    assert not is_same_input(record, list_inputs(str(path), of_any_kind=True)[0])


def test_a_folder_of_a_store_stands_for_the_same_files_as_a_local_one(
    tmp_path: Path, object_store: ObjectStore
):
    make(tmp_path, "game_10.jsonl", "game_9.replay", ".hidden", "_done", "notes")
    (tmp_path / "older").mkdir()
    make(tmp_path / "older", "game_1.replay")
    object_store.put_folder("any-kind", tmp_path)

    local = names_of(list_inputs(str(tmp_path), of_any_kind=True))

    assert local == ["game_9.replay", "game_10.jsonl", "notes"]
    assert names_of(list_inputs("s3://any-kind", of_any_kind=True)) == local
    assert names_of(list_inputs("s3://any-kind/", of_any_kind=True)) == local
    assert names_of(list_inputs(f"file://{tmp_path}", of_any_kind=True)) == local
    assert names_of(list_inputs("s3://any-kind/older", of_any_kind=True)) == ["game_1.replay"]
    assert names_of(list_inputs("s3://any-kind/notes", of_any_kind=True)) == ["notes"]
    assert names_of(list_inputs("s3://any-kind", of_any_kind=False)) == ["game_10.jsonl"]
    object_store.put("any-kind", {"marks/_done": b""})
    with pytest.raises(DataError, match=r"^s3://any-kind/marks: has no files in it$"):
        list_inputs("s3://any-kind/marks", of_any_kind=True)


def test_a_change_in_the_middle_of_a_file_in_a_store_is_noticed(object_store: ObjectStore):
    content = bytearray(300_000)
    object_store.put("changing", {"game": bytes(content)})
    [file] = list_inputs("s3://changing/game", of_any_kind=True)
    record = mark_input(file)

    assert is_same_input(record, file)
    object_store.put("changing", {"game": bytes(content)})
    assert is_same_input(record, file)
    content[150_000] = 1
    object_store.put("changing", {"game": bytes(content)})
    assert not is_same_input(record, file)


def test_folders_in_a_folder_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    make(tmp_path, "a.csv")
    for name in ("more", "others", ".hidden"):
        (tmp_path / name).mkdir()

    for of_any_kind in (True, False):
        assert names_of(list_inputs(str(tmp_path), of_any_kind)) == ["a.csv"]

    told = f"{tmp_path}: 2 folders in it are not read, first {tmp_path}/more; a folder with raw files is named by"
    assert caplog.messages == [f"{told} itself"] * 2


@pytest.fixture
def raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with data/raw/game_0.txt, data/more/a.json and data/b.txt, which is the current one."""
    monkeypatch.chdir(tmp_path)
    for name in ("data/raw/game_0.txt", "data/more/a.json", "data/b.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("0 1 2 3\n")
    return tmp_path


@pytest.mark.parametrize(
    ("input_path", "folder", "problem"),
    [
        ("data/raw", "data", "holds the raw file data/raw/game_0.txt; choose a folder apart from raw files"),
        ("data/raw", "data/raw/x/y", "lies in data/raw, the folder of the raw files; choose one outside"),
        ("data/*/*.json", "data/more", "holds the raw file data/more/a.json"),
    ],
)
def test_what_would_be_read_as_raw_data(raw: Path, input_path: str, folder: str, problem: str):
    del raw

    with pytest.raises(ConfigError) as error:
        check_output_folder(OUTPUT_DIR, folder, input_path, list_inputs(input_path, of_any_kind=True))

    assert str(error.value).startswith(f"preprocessing.output_dir: {folder} {problem}")


def test_a_folder_of_somebody_else(raw: Path):
    raw.chmod(0o755)
    (raw / "data").chmod(0o555)

    message = "data may not be written to by this user; choose another folder"
    with without_privileges(), pytest.raises(ConfigError, match=message):
        check_output_folder(OUTPUT_DIR, "data/store", "", [])


SPLITS = {"train": 0.5, "val": 0.5, "test": 0}


def to(output_dir: str, **keys: Any) -> Preprocessing:
    """What to prepare, with batch files in the folder `batches`."""
    folders = {"intermediate_dir": "batches", "output_dir": output_dir}
    return Preprocessing.model_validate(
        {"input_path": "raw", "extract": "rawgame:samples", **folders, **keys}
    )


@pytest.fixture
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("in_folder")
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
        check_store_folder(folders)

    assert str(error.value) == f"preprocessing.{problem}"


@pytest.mark.usefixtures("in_folder")
@pytest.mark.parametrize(
    ("name", "keys", "is_in_the_way"),
    [
        ("labels_train.npz", {}, True),
        ("X_val.npy", {"splits": SPLITS}, True),
        ("X_units_train.npy", {}, True),
        ("train.h5", {"target": "hdf5"}, True),
        ("train", {"target": "parquet"}, True),
        ("X_val.npy", {}, False),
        ("notes.txt", {}, False),
        (".merging-1/manifest.json", {}, False),
    ],
)
def test_files_of_others_are_not_written_over(name: str, keys: dict[str, Any], is_in_the_way: bool):
    Path("store", name).parent.mkdir(parents=True)
    Path("store", name).write_bytes(b"")

    if is_in_the_way:
        with pytest.raises(ConfigError, match=rf"^preprocessing\.output_dir: store: {name} is there without"):
            check_store_folder(to("store", **keys))
    else:
        check_store_folder(to("store", **keys))
