"""Paths in an object store, and everything that can be wrong with them; against a real server on loopback."""

import pytest

from penstock.config.errors import DataError
from penstock.readers.files import DataFile, data_suffix, list_files
from tests.readers.object_store import ObjectStore

NAMES = [
    "b.parquet",
    "a.parquet",
    "c.csv",
    "README.md",
    "_SUCCESS",
    ".hidden.parquet",
    "day=2/x.csv",
    "day=1/x.csv",
]


@pytest.fixture(scope="module")
def visits(shared_store: ObjectStore) -> None:
    """A bucket that the tests below only look at."""
    shared_store.put("visits", {f"2024/{name}": b"12345" for name in NAMES} | {"top.csv": b"123"})


@pytest.fixture
def store(visits: None, object_store: ObjectStore) -> ObjectStore:
    return object_store


@pytest.mark.parametrize(
    ("path", "keys"),
    [
        ("s3://visits/2024/*.parquet", ["2024/a.parquet", "2024/b.parquet"]),
        ("s3://visits/2024/day=[12]/*.csv", ["2024/day=1/x.csv", "2024/day=2/x.csv"]),
        ("s3://visits/2024/day=*", ["2024/day=1/x.csv", "2024/day=2/x.csv"]),
        ("s3://visits/**/*.csv", ["2024/c.csv", "2024/day=1/x.csv", "2024/day=2/x.csv", "top.csv"]),
        ("s3://visits/2024/", ["2024/a.parquet", "2024/b.parquet", "2024/c.csv"]),
        ("s3://visits", ["top.csv"]),
        ("s3://visits/top.csv, s3://visits/2024/c.csv", ["top.csv", "2024/c.csv"]),
    ],
)
def test_files_that_a_path_means(store: ObjectStore, path: str, keys: list[str]) -> None:
    files = list_files(path)

    assert [file.path.removeprefix("s3://visits/") for file in files] == keys
    assert {file.size_bytes for file in files} <= {3, 5}


def test_the_suffix_and_the_name_are_those_of_the_key() -> None:
    file = DataFile("s3://visits/2024/a.csv.gz?region=eu-west-1", 1)

    assert (file.name, data_suffix(file.path)) == ("a.csv.gz", ".csv")


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("visits/2024/a.parqet", "no such file or directory; did you mean 's3://visits/2024/a.parquet'?"),
        ("visits/2042/a.parquet", "no such directory as 2042; did you mean 's3://visits/2024'?"),
        ("visits/nothing", "no such file or directory; s3://visits/ holds 2024, top.csv"),
        (
            "visits/2024/*.orc",
            "matches nothing; s3://visits/2024 holds README.md, _SUCCESS, a.parquet, b.parquet, c.csv, day=1, day=2",
        ),
        ("visits/none/*.csv", "matches nothing; s3://visits/none is empty"),
        ("vistis/a.csv", "there is no s3://vistis/, or these keys may not see it"),
        ("vistis/*.csv", "there is no s3://vistis/, or these keys may not see it"),
    ],
)
def test_wrong_paths(store: ObjectStore, path: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        list_files(f"s3://{path}")

    assert str(caught.value) == f"s3://{path}: {problem}"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("s3:///a.csv", "s3:///a.csv: names no bucket; write s3://bucket/path"),
        ("s3://key:secret@visits/a.csv", "s3://visits: has keys in its path, which would stand in logs; set"),
        (
            "s3://visits/a.csv?regoin=x",
            "s3://visits/?regoin=x: has the unknown option 'regoin'; did you mean 'region'?",
        ),
    ],
)
def test_wrong_uris(path: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        list_files(path)

    assert str(caught.value).startswith(problem)
    assert "secret" not in str(caught.value)
