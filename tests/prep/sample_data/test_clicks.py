import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from penstock.prep.sample_data.clicks import (
    MAX_LENGTH,
    NUM_ITEMS,
    NUM_USERS,
)
from penstock.prep.sample_data.write import write_sample_data


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> pa.Table:
    out = tmp_path_factory.mktemp("clicks") / "out"
    write_sample_data("clicks", 30_000, out, splits={"all": 1.0})
    return pq.read_table(out / "all")


def seconds(rows: pa.Table) -> np.ndarray:
    return rows["event_time"].cast(pa.int64()).to_numpy() // 1000


def test_columns_and_types(rows):
    assert {field.name: str(field.type) for field in rows.schema} == {
        "user_id": "int64",
        "item_id": "int64",
        "city": "string",
        "device": "string",
        "category": "string",
        "age": "int32",
        "price": "float",
        "ctr_7d": "float",
        "days_since_visit": "float",
        "hour": "int64",
        "event_time": "timestamp[ms]",
        "tags": "list<element: string>",
        "interests": "map<string, float ('interests')>",
        "click_seq": "list<element: int64>",
        "click_time_seq": "list<element: int64>",
        "cost": "int64",
        "click": "int64",
        "buy": "int64",
        "watch_seconds": "float",
    }


def test_ids_are_skewed_and_in_range(rows):
    for column, cardinality in (("user_id", NUM_USERS), ("item_id", NUM_ITEMS)):
        ids = rows[column].to_numpy()
        counts = np.sort(np.bincount(ids, minlength=cardinality))[::-1]
        assert len(counts) == cardinality
        assert counts[: cardinality // 100].sum() > 0.4 * len(ids)


@pytest.mark.parametrize(
    ("column", "share"), [("age", 0.08), ("price", 0.05), ("ctr_7d", 0.12), ("days_since_visit", 0.1)]
)
def test_numbers_have_nulls_and_no_nan(rows, column, share):
    assert 0 < rows[column].null_count / len(rows) < 3 * share
    assert not pc.any(pc.is_nan(rows[column].cast(pa.float64()))).as_py()


def test_cost_is_one_more_than_the_length_of_the_history(rows):
    lengths = pc.list_value_length(rows["click_seq"])

    assert lengths == pc.list_value_length(rows["click_time_seq"])
    assert rows["cost"].to_pylist() == [length + 1 for length in lengths.to_pylist()]
    assert pc.min_max(lengths).as_py() == {"min": 0, "max": MAX_LENGTH - 1}


def test_history_is_in_order_and_before_now(rows):
    lengths = pc.list_value_length(rows["click_time_seq"]).to_numpy()
    times = pc.list_flatten(rows["click_time_seq"]).to_numpy()
    row = np.repeat(np.arange(len(rows)), lengths)

    assert (times < seconds(rows)[row]).all()
    assert (np.diff(times)[np.diff(row) == 0] > 0).all()


def test_buy_and_watch_time_only_after_a_click(rows):
    click, buy, watched = (rows[name].to_numpy() for name in ("click", "buy", "watch_seconds"))

    assert (click[buy == 1] == 1).all()
    assert ((watched > 0) == (click == 1)).all()


def test_interests_matter(rows):
    first = rows.slice(0, 20_000)
    interested = np.array(
        [category in dict(interests) for category, interests in zip(
            first["category"].to_pylist(), first["interests"].to_pylist(), strict=True)]
    )  # fmt: skip
    click = first["click"].to_numpy()

    assert click[interested].mean() > click[~interested].mean() + 0.1
