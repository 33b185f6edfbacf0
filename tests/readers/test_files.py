"""Paths of a run file, and everything that can be wrong with them."""

from pathlib import Path

import pytest

from penstock.config.errors import DataError
from penstock.readers.files import DataFile, data_suffix, list_files


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("b.parquet", "a.parquet", "c.csv", "README.md", "_SUCCESS", ".hidden.parquet"):
        (tmp_path / name).write_bytes(b"12345")
    return tmp_path


def _names(files: list[DataFile]) -> list[str]:
    return [Path(file.path).name for file in files]


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("{0}/a.parquet", ["a.parquet"]),
        ("{0}/*.parquet", ["a.parquet", "b.parquet"]),
        ("{0}/b.parquet, {0}/a.parquet", ["b.parquet", "a.parquet"]),
        ("{0}", ["a.parquet", "b.parquet", "c.csv"]),
        ("file://{0}/*.parquet", ["a.parquet", "b.parquet"]),
        ("file://{0}/with%20space.csv", ["with space.csv"]),
    ],
    ids=["file", "glob, sorted", "list, as given", "directory", "file URI", "quoted URI"],
)
def test_files_that_a_path_means(folder: Path, path: str, names: list[str]) -> None:
    if "%20" in path:
        (folder / "with space.csv").write_bytes(b"12345")
    files = list_files(path.format(folder))

    assert files == [DataFile(str(folder / name), 5) for name in names]


def test_a_directory_of_files_without_suffix(tmp_path: Path) -> None:
    for name in ("part-1", "part-0", "_SUCCESS"):
        (tmp_path / name).touch()

    assert _names(list_files(str(tmp_path))) == ["part-0", "part-1"]
    assert _names(list_files(f"{tmp_path}/../{tmp_path.name[:-1]}?")) == ["part-0", "part-1"]


def test_a_path_with_a_comma_or_brackets_that_exists_is_taken_as_it_is(tmp_path: Path) -> None:
    for name in ("a,b.csv", "[1].csv"):
        (tmp_path / name).touch()

    assert _names(list_files(str(tmp_path / "a,b.csv"))) == ["a,b.csv"]
    assert _names(list_files(str(tmp_path / "[1].csv"))) == ["[1].csv"]


def test_the_suffix_is_that_of_the_format() -> None:
    assert data_suffix("clicks.CSV.gz") == ".csv"
    assert data_suffix("clicks.tfrecord-00000-of-00002") == ".tfrecord"


def test_paths_without_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=f"{tmp_path}: no data files in this directory; {tmp_path} is empty"):
        list_files(str(tmp_path))
    with pytest.raises(DataError, match=r"no data path is given"):
        list_files(" , ")
    with pytest.raises(DataError, match=r"http://host/x.csv: http:// paths cannot be read; known: abfs,"):
        list_files("http://host/x.csv")


def test_no_permission(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    with pytest.raises(DataError, match=r"a.parquet: no permission to read this file"):
        list_files(str(folder / "a.parquet"))
