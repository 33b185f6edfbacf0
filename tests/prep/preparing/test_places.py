"""Folders that are written to: apart from the raw files, and such that they can be written to."""

from pathlib import Path

import pytest

from penstock.config.errors import ConfigError
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions
from penstock.prep.preparing.inputs import list_inputs
from penstock.prep.preparing.places import OUTPUT_DIR, check_place, check_writable
from penstock.prep.preparing.preparing import prepare
from tests.prep.preparing.raw import content, section, write_games
from tests.privileges import without_privileges


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
        (
            "data/raw",
            "data/raw",
            "data/raw holds the raw file data/raw/game_0.txt; choose a folder apart from raw files",
        ),
        (
            "data/raw",
            "data",
            "data holds the raw file data/raw/game_0.txt; choose a folder apart from raw files",
        ),
        (
            "data/raw/*.txt",
            "data/raw/",
            "data/raw/ holds the raw file data/raw/game_0.txt; choose a folder apart",
        ),
        (
            "data/raw",
            "data/raw/x/y",
            "data/raw/x/y lies in data/raw, the folder of the raw files; choose one outside",
        ),
        (
            "data/*",
            "data/processed",
            "data/processed is where preprocessing.input_path data/* looks for raw files",
        ),
        (
            "data/*/*.json",
            "data/processed",
            "data/processed is where preprocessing.input_path data/*/*.json looks for",
        ),
        (
            "data/**/*.json*",
            "data/a/b",
            "data/a/b is where preprocessing.input_path data/**/*.json* looks for",
        ),
    ],
)
def test_what_would_be_read_as_raw_data(raw: Path, input_path: str, folder: str, problem: str):
    del raw

    with pytest.raises(ConfigError) as error:
        check_place(OUTPUT_DIR, folder, input_path, list_inputs(input_path, of_any_kind=True))

    assert str(error.value).startswith(f"preprocessing.output_dir: {problem}")


@pytest.mark.parametrize(
    "input_path", ["data/raw", "data/*.txt", "data/*/*.txt", "data/**/*.txt", "data/b.txt"]
)
def test_folders_apart(raw: Path, input_path: str):
    del raw

    check_place(OUTPUT_DIR, "data/processed", input_path, list_inputs(input_path, of_any_kind=True))


@pytest.mark.parametrize("target", ["npy", "parquet", "ipc", "hdf5"])
def test_every_file_of_a_store_would_be_found_by_its_name(desk: Path, target: str):
    write_games(desk / "raw", [3])
    prepared = section(desk, target=target)
    prepare(prepared)
    merge(prepared.intermediate_dir, prepared.output_dir, options=MergeOptions(target=target))

    for path in Path(prepared.output_dir).rglob("*.*"):
        if path.is_file():
            with pytest.raises(ConfigError, match="looks for raw files"):
                check_place(OUTPUT_DIR, prepared.output_dir, f"{desk}/**/{path.name[:5]}*{path.suffix}", [])


def test_nothing_is_written_where_raw_files_are(desk: Path):
    write_games(desk / "raw", [3])
    before = content(desk)

    for keys in ({"intermediate_dir": f"{desk}/raw/batches"}, {"output_dir": str(desk)}):
        with pytest.raises(ConfigError, match=r"^preprocessing\.\w+_dir: .* raw file"):
            prepare(section(desk, **keys), merges=True)

    assert [name for name in content(desk) if "pycache" not in name] == [*before]


def test_a_file_is_no_folder(raw: Path):
    del raw

    with pytest.raises(ConfigError) as error:
        check_writable(OUTPUT_DIR, "data/b.txt/store")

    assert str(error.value) == (
        "preprocessing.output_dir: data/b.txt is a file; name a folder, or a place where one can be made"
    )


def test_a_folder_of_somebody_else(raw: Path):
    raw.chmod(0o755)
    (raw / "data").chmod(0o555)

    message = "data may not be written to by this user; choose another folder"
    with without_privileges(), pytest.raises(ConfigError, match=message):
        check_writable(OUTPUT_DIR, "data/store")
