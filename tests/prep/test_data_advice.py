"""What is warned of, and the command that mends it."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.config.sizes import GIB, MIB
from penstock.prep.data_advice import Storage, advise
from penstock.prep.profile import ColumnFacts, DataProfile

RANDOM = np.random.default_rng(7)
FINE = Storage("data", num_files=1, bytes_on_disk=GIB, row_group_rows=(100_000,))


def profile_of(row_bytes=300.0, **columns):
    facts = []
    for name, values in columns.items():
        array = pa.array(values)
        profile = ColumnFacts(name, array.type)
        profile.add(array)
        facts.append(profile)
    num_rows = facts[0].num_rows if facts else 0
    return DataProfile(tuple(facts), num_rows, num_rows, row_bytes, 1, None, True)


def advice(storage=FINE, **columns):
    return advise(profile_of(**columns), storage)


def test_nothing_to_say():
    assert (
        advice(
            user_id=RANDOM.integers(0, 500, 1000),
            city=["rome", "oslo"] * 500,
            click=RANDOM.integers(0, 2, 1000),
            hour=np.arange(1000) % 24,
        )
        == []
    )


REWRITE = "penstock rewrite data NEW_FOLDER"
STORED = {
    "huge row groups": (
        Storage("data", 1, GIB, row_group_rows=(1_000_000, 10_000)),
        f"1 of 2 row groups take more than 256MiB in memory: they are read in slices, which is slower; {REWRITE}",
    ),
    "tiny row groups": (
        Storage("data", 1, GIB, row_group_rows=(100,) * 20),
        f"20 of 20 row groups take less than 512KiB in memory: larger ones (16MiB to 64MiB) read faster; {REWRITE}",
    ),
    "tiny files": (
        Storage("data", 100, MIB),
        f"100 files of 10.2KiB on average: opening them costs more than reading; {REWRITE}",
    ),
    "text": (
        Storage("data", 1, GIB, parquet_part=0.31, format_name="CSV files"),
        f"CSV files would take about 31% of the space as Parquet, and read faster; {REWRITE}",
    ),
}


@pytest.mark.parametrize(("storage", "line"), STORED.values(), ids=STORED)
def test_how_data_is_stored(storage, line):
    assert advise(profile_of(), storage) == [line]


SHUFFLE = f"train with data_config.shuffle, or {REWRITE} --shuffle"
TIMES = np.arange(1_700_000_000, 1_700_001_000)
COLUMNS = {
    "sorted by time": (
        {"event_time": TIMES},
        f"event_time: rows are sorted by time, so that batches are of one moment each; {SHUFFLE}",
    ),
    "sorted by day": ({"dt": [20240101] * 500 + [20240102] * 500}, "dt: rows are sorted by time"),
    "times go back": (
        {"ts": np.where(TIMES[500] == TIMES, TIMES[0], TIMES)},
        "ts: looks like a time but does not ascend with the rows (0% of the steps go back): the last rows are not",
    ),
    "sorted by label": (
        {"label": [0] * 500 + [1] * 500},
        f"label: equal labels stand together, so that batches are of one kind; {SHUFFLE}",
    ),
    "rare labels": ({"click": [0] * 500 + [1] + [0] * 999}, "click: the base rate is 0.0667%"),
    "equal labels": ({"is_fraud": [0] * 100}, "is_fraud: all labels are 0; there is nothing to learn"),
    "an id that most rows share": (
        {"user_id": np.where(np.arange(1000) % 10 < 6, -1, np.arange(1000))},
        "user_id: -1 stands in 60% of the rows; if it means that the id is missing, write null",
    ),
    "numbers as strings": (
        {"price": ["1.5", "2"]},
        "price: all strings are numbers; as numbers they take less space and no parsing",
    ),
    "no value": (
        {"empty": pa.nulls(3, pa.int64())},
        "empty: has no value in any row that was looked at; leave it out",
    ),
    "NaN": (
        {"ratio": [1.0, float("nan"), 2.0]},
        "ratio: 1 values are NaN; write null where a value is missing",
    ),
}


@pytest.mark.parametrize(("columns", "line"), COLUMNS.values(), ids=COLUMNS)
def test_what_is_in_columns(columns, line):
    (found,) = advice(**columns)

    assert found.startswith(line)


@pytest.mark.parametrize("name", ["hour", "user_id", "time"])
def test_numbers_that_are_no_moments(name):
    assert advice(**{name: np.arange(1000) % 24}) == []


@pytest.mark.parametrize(
    ("name", "is_id"), [("user_id", True), ("userId", True), ("bid", False), ("paid", False)]
)
def test_an_id_that_is_mostly_one_value_by_its_name(name, is_id):
    lines = advice(**{name: [0] * 900 + list(range(100))})

    assert [line.startswith(f"{name}: 0 stands in 90% of the rows") for line in lines] == [True] * is_id
