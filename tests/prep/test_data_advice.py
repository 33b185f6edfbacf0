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
        profile = ColumnFacts(pa.field(name, array.type))
        profile.add(array)
        facts.append(profile)
    num_rows = facts[0].num_rows if facts else 0
    return DataProfile(tuple(facts), num_rows, num_rows, row_bytes, 1, None)


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


def test_huge_row_groups():
    storage = Storage("data", 1, GIB, row_group_rows=(1_000_000, 10_000))

    assert advise(profile_of(), storage) == [
        (
            "1 of 2 row groups take more than 256MiB in memory: they are read in slices, which is slower; "
            "penstock rewrite data NEW_FOLDER"
        )
    ]


def test_tiny_row_groups():
    storage = Storage("data", 1, GIB, row_group_rows=(100,) * 20)

    assert advise(profile_of(), storage) == [
        (
            "20 of 20 row groups take less than 512KiB in memory: larger ones (16MiB to 64MiB) read faster; "
            "penstock rewrite data NEW_FOLDER"
        )
    ]


def test_many_tiny_files():
    assert advise(profile_of(), Storage("data", 100, MIB)) == [
        "100 files of 10.2KiB on average: opening them costs more than reading; penstock rewrite data NEW_FOLDER"
    ]


def test_text_formats_that_would_be_smaller_as_parquet():
    storage = Storage("data", 1, GIB, parquet_part=0.31, format_name="CSV files")

    assert advise(profile_of(), storage) == [
        "CSV files would take about 31% of the room as Parquet, and read faster; penstock rewrite data NEW_FOLDER"
    ]


def test_rows_sorted_by_time_need_a_shuffle():
    assert advice(event_time=np.arange(1_700_000_000, 1_700_001_000)) == [
        (
            "event_time: rows are sorted by time, so that batches are of one moment each; "
            "train with data_config.shuffle, or penstock rewrite data NEW_FOLDER --shuffle"
        )
    ]


def test_time_that_does_not_ascend():
    times = np.arange(1_700_000_000, 1_700_001_000)
    times[500] = times[0]

    (line,) = advice(ts=times)

    assert line.startswith(
        "ts: looks like a time but does not ascend with the rows (0% of the steps go back)"
    )
    assert "the last rows are not the newest" in line


@pytest.mark.parametrize("name", ["hour", "user_id", "time"])
def test_numbers_that_are_no_moments(name):
    assert advice(**{name: np.arange(1000) % 24}) == []


def test_days_written_as_numbers_are_moments():
    (line,) = advice(dt=[20240101] * 500 + [20240102] * 500)

    assert line.startswith("dt: rows are sorted by time")


def test_sorted_by_label():
    (line,) = advice(label=[0] * 500 + [1] * 500)

    assert line.startswith("label: equal labels stand together, so that batches are of one kind; train with")


def test_rare_labels():
    (line,) = advice(click=[0] * 500 + [1] + [0] * 999)

    assert line.startswith("click: the base rate is 0.0667%")


def test_labels_that_are_all_equal():
    assert advice(is_fraud=[0] * 100) == ["is_fraud: all labels are 0; there is nothing to learn"]


def test_an_id_that_most_rows_share():
    ids = np.where(np.arange(1000) % 10 < 6, -1, np.arange(1000))

    assert advice(user_id=ids) == [
        "user_id: -1 stands in 60% of the rows; if it means that the id is missing, write null"
    ]


def test_texts_that_are_numbers():
    assert advice(price=["1.5", "2"]) == [
        "price: all texts are numbers; as numbers they take less room and no parsing"
    ]


def test_columns_without_values_and_with_nan():
    assert advice(empty=pa.nulls(3, pa.int64()), ratio=[1.0, float("nan"), 2.0]) == [
        "empty: has no value in any row that was looked at; leave it out",
        "ratio: 1 values are NaN; write null where a value is missing",
    ]
