"""Raw files: which, in which order, and whether they are still the same."""

import os
from pathlib import Path

import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.inputs import is_same_input, list_inputs, mark_input
from penstock.readers.files import DataFile
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
