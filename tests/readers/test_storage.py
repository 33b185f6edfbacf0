"""Files of an object store, opened and listed: a real S3-compatible server on loopback."""

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers import storage
from penstock.readers.files import DataFile, list_files
from penstock.readers.storage import RemoteFile, open_input, read_at, s3_endpoint_and_region
from tests.readers.object_store import ObjectStore, refusing_server, silent_server

CONTENT = bytes(range(256)) * 4096


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up at the second attempt: the pauses between attempts grow, and last seconds."""
    monkeypatch.setattr(storage, "MAX_ATTEMPTS", 2)


def test_a_file_of_a_store_is_read_from_any_offset_and_as_a_stream(object_store: ObjectStore) -> None:
    object_store.put("bytes", {"deep/a.bin": CONTENT})

    with open_input("s3://bytes/deep/a.bin") as source:
        assert source.size() == len(CONTENT)
        assert read_at(source, 4, 254) == b"\xfe\xff\x00\x01"
        assert read_at(source, 100, len(CONTENT) - 2) == b"\xfe\xff"
        source.seek(0)
        assert source.read() == CONTENT


def test_the_endpoint_may_stand_in_the_path(object_store, monkeypatch):
    object_store.put("bytes", {"a.bin": b"abc"})
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    path = f"s3://bytes/a.bin?endpoint_override={object_store.address}&scheme=http&region=eu-west-1"

    assert list_files(path) == [DataFile(path, 3)]
    with open_input(path) as source:
        assert source.read() == b"abc"


class _Counted:
    def __init__(self, content: bytes) -> None:
        self._file = pa.BufferReader(content)
        self.size = self._file.size
        self.requests: list[tuple[int, int]] = []

    def read_at(self, num_bytes: int, offset: int) -> bytes:
        self.requests.append((offset, num_bytes))
        return read_at(self._file, num_bytes, offset)


def _remote(content: bytes) -> tuple[RemoteFile, list[tuple[int, int]]]:
    counted = _Counted(content)
    return RemoteFile("s3://a/b", counted, len(content)), counted.requests  # type: ignore[arg-type]


def test_small_reads_of_columns_by_turns_fetch_every_byte_once() -> None:
    remote, requests = _remote(bytes(range(256)) * (6 * MIB // 256))

    for step in range(0, 2 * MIB, 64 * KIB):
        for column in (0, 2 * MIB, 4 * MIB):
            remote.seek(column + step)
            assert remote.read(2) == b"\x00\x01"

    assert len(requests) == 6 * MIB // (256 * KIB)
    assert sum(num_bytes for _, num_bytes in requests) == 6 * MIB


def test_a_large_read_is_one_request_and_blocks_are_bounded() -> None:
    remote, requests = _remote(bytes(32 * MIB))

    assert len(remote.read(6 * MIB)) == 6 * MIB
    assert requests == [(0, 6 * MIB)]
    for offset in range(0, 32 * MIB, 100 * KIB):
        remote.seek(offset)
        remote.read(1)
    assert storage._block.cache_info().currsize * 256 * KIB == storage.ALL_BLOCKS_BYTES


@pytest.mark.parametrize(
    ("environment", "found"),
    [
        ({"AWS_ENDPOINT_URL": ""}, (None, None)),
        ({"AWS_ENDPOINT_URL": "http://a:1", "AWS_DEFAULT_REGION": "eu"}, ("http://a:1", "eu")),
        ({"AWS_ENDPOINT_URL": "http://a:1", "AWS_ENDPOINT_URL_S3": "http://s3:2"}, ("http://s3:2", None)),
        ({"AWS_DEFAULT_REGION": "us", "AWS_REGION": "eu"}, (None, "eu")),
    ],
)
def test_where_s3_is(environment: dict[str, str], found: tuple[str | None, str | None]) -> None:
    assert s3_endpoint_and_region(environment) == found


def test_a_file_that_became_shorter(object_store: ObjectStore) -> None:
    object_store.put("shrinks", {"a.bin": CONTENT})

    with open_input("s3://shrinks/a.bin") as source:
        object_store.put("shrinks", {"a.bin": b"short"})
        with pytest.raises(DataError, match=r"s3://shrinks/a.bin: cannot be read"):
            read_at(source, 10, 500_000)


def test_a_store_that_never_answers(monkeypatch: pytest.MonkeyPatch, impatient: None) -> None:
    monkeypatch.setattr(storage, "TIMEOUT_SECONDS", 1.0)
    with silent_server() as (url, num_connections):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(DataError, match=r"s3://silent/a.csv: the store does not answer"):
            list_files("s3://silent/a.csv")
        assert num_connections() == 2


@pytest.mark.parametrize(
    ("status", "num_requests", "problem"),
    [
        (403, 1, "access is denied; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        (503, 2, "cannot be read: "),
    ],
    ids=["keys that may not read", "a busy store is asked again"],
)
def test_a_store_that_refuses(monkeypatch, impatient, status, num_requests, problem):
    with refusing_server(status) as (url, handler):
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        with pytest.raises(DataError, match=f"s3://refused/a.csv: {problem}"):
            list_files("s3://refused/a.csv")

    assert handler.num_requests == num_requests


# Paths, and everything that can be wrong with them.

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
