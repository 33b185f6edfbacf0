import pytest

from penstock.config.errors import ConfigError
from penstock.prep.sample_data.layout import cut_evenly, plan_files, split_rows


def test_rows_are_cut_evenly_and_in_order():
    assert cut_evenly(0, 10, 3) == [(0, 4), (4, 7), (7, 10)]
    assert cut_evenly(5, 7, 2) == [(5, 6), (6, 7)]


def test_splits_are_consecutive_ranges():
    assert split_rows(1_000, {"train": 0.8, "valid": 0.1, "test": 0.1}) == {
        "train": (0, 800),
        "valid": (800, 900),
        "test": (900, 1_000),
    }


def test_a_split_without_rows_is_an_error():
    with pytest.raises(
        ConfigError, match=r"^3 rows leave split 'test' \(0.1 of them\) empty; ask for more rows$"
    ):
        split_rows(3, {"train": 0.9, "test": 0.1})


@pytest.mark.parametrize("splits", [{}, {"train": 0.5}, {"train": 1.5, "test": -0.5}])
def test_fractions_must_add_up_to_one(splits):
    with pytest.raises(ConfigError, match="must be positive fractions that add up to 1"):
        split_rows(100, splits)


@pytest.mark.parametrize("name", ["", "a/b", "..", "."])
def test_a_split_is_the_name_of_a_folder(name):
    with pytest.raises(ConfigError, match="is not the name of a folder"):
        split_rows(100, {name: 1.0})


def test_no_file_is_empty():
    plans = list(plan_files({"train": (0, 9), "test": (9, 10)}, num_files=2, extension="csv"))

    assert [(plan.name, plan.start, plan.stop) for plan in plans] == [
        ("train/part-00000.csv", 0, 5),
        ("train/part-00001.csv", 5, 9),
        ("test/part-00000.csv", 9, 10),
    ]
