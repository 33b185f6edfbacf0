"""Reading tables with the real client, from a small service on loopback that speaks its protocols."""

import json
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest

from penstock.config.errors import BudgetExceeded, CheckpointError, ConfigError, DataError
from penstock.readers import odps
from penstock.readers.files import DataFile, list_files
from penstock.readers.order import Shard
from penstock.readers.stream import locate
from tests.readers.object_store import nobody_there
from tests.readers.odps_service import Service
from tests.readers.samples import flat, open_path, row_ids, scan_path, table_of, take

CLICKS = "odps://shop/tables/clicks"


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(odps, "FIRST_PAUSE_SECONDS", 0.001)
    monkeypatch.setitem(odps._SETTINGS, "retry_delay", 0.001)
    monkeypatch.setattr(odps, "BLOCK_ROWS", 20)
    with Service() as running:
        for name, value in (("ACCESS_ID", "id"), ("ACCESS_KEY", "secret"), ("ENDPOINT", running.endpoint)):
            monkeypatch.setenv(f"ODPS_{name}", value)
        running.add("clicks", table_of(0, 55), "pt=1")
        running.add("clicks", table_of(55, 60), "pt=2")
        running.add("plain", table_of(0, 30))
        yield running


def test_rows_come_in_the_order_of_the_partitions_with_their_origin(service: Service) -> None:
    batches = list(open_path(f"{CLICKS}/pt=1,{CLICKS}/pt=2"))

    assert flat(batches) == list(range(60))
    assert [locate(row) for row in row_ids(batches)][54:57] == [(0, 54), (1, 0), (1, 1)]


def test_only_wanted_columns_are_asked_for_and_the_partition_is_one_too(service: Service) -> None:
    service.add("hours", table_of(0, 3), "pt=1/hour=7")
    service.add("hours", table_of(3, 5), "pt=1/hour=8")
    path = "odps://shop/tables/hours"
    (batch,) = open_path(f"{path}/pt=1/hour=8", columns=["hour", "list", "number"])

    assert batch.select(["hour", "number"]).to_pydict() == {"hour": ["8", "8"], "number": [3, 4]}
    assert {query["columns"] for _, query in service.requests if "rowrange" in query} == {"list,number"}
    assert flat(open_path(f"{path}/pt=1/hour=8&pt=1/hour=7", columns=["hour"]), "hour") == [*"88777"]


def test_shards_ask_for_their_own_rows_only(service: Service) -> None:
    shards = [open_path(f"{CLICKS}/pt=1", shard=Shard(index, 2)) for index in range(2)]
    service.requests.clear()

    assert [flat(shard) for shard in shards] == [list(range(28)), list(range(28, 55))]
    assert service.row_ranges == ["(0,20)", "(20,8)", "(28,12)", "(40,15)"]


def test_resumes_after_every_batch(service: Service) -> None:
    path = f"{CLICKS}/pt=1&pt=2"
    expected = flat(open_path(path, seed=7))
    reader = open_path(path, seed=7)
    for stop in range(8):
        reader.set_epoch(0)
        first = flat(take(reader, stop))
        saved = json.loads(json.dumps(reader.state_dict()))
        reader.set_epoch(5)
        reader.load_state_dict(saved)

        assert first + flat(reader) == expected

    assert sorted(expected) == list(range(60))


def test_a_table_that_changed_between_save_and_resume(service: Service) -> None:
    saved = open_path(f"{CLICKS}/pt=1").state_dict()
    service.modified += 60

    with pytest.raises(CheckpointError, match=r"clicks/pt=1: is not the file that the position was saved"):
        open_path(f"{CLICKS}/pt=1").load_state_dict(saved)


@pytest.mark.parametrize(
    ("cuts", "shorts", "ranges"),
    [([0, 300, 1036, 0, 300], [], []), ([], [13, 5], ["(0,20)", "(7,13)", "(15,5)"])],
    ids=["connections are cut", "answers end early without a word"],
)
def test_a_range_that_breaks_off_goes_on_from_the_current_row(service, cuts, shorts, ranges):
    reader = open_path(f"{CLICKS}/pt=1")
    service.requests.clear()
    service.cut_after_bytes, service.short_by_rows = list(cuts), list(shorts)

    assert flat(reader) == list(range(55))
    assert not service.cut_after_bytes
    assert len(service.row_ranges) > 3
    assert service.row_ranges[: len(ranges)] == ranges


def test_a_connection_that_is_always_cut(service: Service) -> None:
    reader = open_path(f"{CLICKS}/pt=1")
    service.requests.clear()
    service.cut_after_bytes = [100] * 100

    with pytest.raises(DataError, match=r"clicks/pt=1: row 0: cannot be read: "):
        list(reader)
    assert len(service.row_ranges) <= 3 * (1 + odps.MAX_FAILURES)


def test_a_value_that_cannot_be_cast_is_not_asked_for_again(service, monkeypatch):
    def fail(*_):
        raise pa.ArrowInvalid("no such cast")

    monkeypatch.setattr(odps, "as_type", fail)
    with pytest.raises(
        DataError, match=r"clicks/pt=1: column 'number': cannot be read as int64: no such cast"
    ):
        open_path(f"{CLICKS}/pt=1", columns=["number"])
    assert len(service.row_ranges) == 1


def test_a_table_that_changes_while_it_is_read(service: Service) -> None:
    reader = open_path(f"{CLICKS}/pt=1")
    service.add("clicks", table_of(0, 50), "pt=1")

    with pytest.raises(DataError, match=r"pt=1: has changed while it was being read: it had 55 rows and has"):
        list(reader)


def test_a_small_share_asks_for_few_rows_at_a_time(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(odps, "_MIN_REQUEST_BYTES", 1)
    scanned = scan_path("odps://shop/tables/plain")
    service.requests.clear()

    share_bytes = 4 * scanned.sizes.min_bytes
    assert flat(open_path("odps://shop/tables/plain", share_bytes=share_bytes)) == list(range(30))
    assert "(0,4)" in service.row_ranges


def test_rows_that_do_not_fit(service: Service) -> None:
    service.add("large", pa.table({"text": ["short"] * 600 + ["long" * 100_000] * 4}))

    with pytest.raises(BudgetExceeded, match=r"large: 4 rows take 1.6MB|large: 4 rows take 1.5MiB"):
        list(open_path("odps://shop/tables/large", share_bytes=1_000_000))


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("clicks/pt=1", "is no path of a table; write odps://project/tables/name/partition=value"),
        ("tables/cliks/pt=1", "there is no such table"),
        ("tables/clicks/pt=3", f"there is no such partition; did you mean '{CLICKS}/pt=2'?"),
        ("tables/clicks/pt=20240131", f"there is no such partition; {CLICKS} holds pt=2, pt=1"),
        (
            "tables/clicks",
            f"the table has partitions, so that the path ends with pt=...; {CLICKS} holds pt=2, pt=1",
        ),
    ],
)
def test_wrong_paths(service: Service, path: str, problem: str) -> None:
    with pytest.raises(DataError) as caught:
        list_files(f"odps://shop/{path}")

    assert str(caught.value) == f"odps://shop/{path}: {problem}"


@pytest.mark.parametrize(
    ("status", "code", "problem"),
    [
        (403, "NoPermission", "these keys may not read it"),
        (401, "SignatureNotMatch", "the service refuses the signature; check access_key"),
    ],
)
def test_keys_that_are_wrong(service: Service, status: int, code: str, problem: str) -> None:
    service.refuse = (status, code)

    with pytest.raises(DataError, match=f"{CLICKS}/pt=1: {problem}"):
        list_files(f"{CLICKS}/pt=1")


def test_no_service_at_the_address(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with nobody_there() as url:
        monkeypatch.setenv("ODPS_ENDPOINT", f"{url}/api")
        with pytest.raises(DataError, match=r"pt=1: the service cannot be reached; check end_point"):
            list_files(f"{CLICKS}/pt=1")


def test_keys_may_stand_in_a_file_and_variables_fill_its_gaps(service, tmp_path, monkeypatch):
    file = tmp_path / "odps_conf"
    file.write_text("# keys of the shop\nproject_name=shop\naccess_id = other\naccess_key = a=b\n")
    monkeypatch.setenv("ODPS_CONFIG_FILE_PATH", str(file))

    assert odps.access_from_environment() == ("other", "a=b", service.endpoint)
    assert list_files(f"{CLICKS}/pt=2") == [DataFile(f"{CLICKS}/pt=2", table_of(55, 60).nbytes)]


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({"ODPS_ACCESS_ID": "id"}, "need keys, but ODPS_ACCESS_KEY is not set; set ODPS_ACCESS_ID, ODPS_ACC"),
        ({"ODPS_CONFIG_FILE_PATH": "/nowhere"}, "is /nowhere, which cannot be read: No such file"),
    ],
)
def test_keys_that_are_missing(environment: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        odps.access_from_environment(environment)


def test_the_extra_is_not_installed(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "odps", None)

    with pytest.raises(DataError, match=r"odps:// paths need pyodps; install penstock\[odps\]"):
        list_files(f"{CLICKS}/pt=1")
