"""Values counted in memory and on disk, and statistics of numbers."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.prep.statistics import RANK_ERROR, NumberStatistics, quantile_boundaries
from penstock.prep.vocabularies import ValueCounter

MIB = 1 << 20


def counted(folder, batches, min_count=1, spilled=False):
    """The lines of the vocabulary file, and the vocabulary."""
    counter = ValueCounter(folder / "counts")
    for batch in batches:
        counter.add(pa.array(batch))
        if spilled:
            counter.spill()
    found = counter.vocabulary(min_count, MIB)
    found.write(folder / "values.txt")
    counter.close()
    assert not (folder / "counts").exists()
    return (folder / "values.txt").read_text().splitlines(), found


@pytest.mark.parametrize("spilled", [False, True], ids=["in memory", "on disk"])
def test_the_most_frequent_come_first_and_rare_ones_not_at_all(tmp_path, spilled):
    batches = [["oslo", "rome", "oslo"], ["rome", "oslo", "bonn", "lima"], ["lima", "lima", "lima"]]

    lines, found = counted(tmp_path, batches, min_count=2, spilled=spilled)

    assert lines == ["lima", "oslo", "rome"]
    assert (found.num_values, found.num_distinct, found.num_kept, found.num_kept_values) == (10, 4, 3, 9)


def test_integers_count_as_they_are_written(tmp_path):
    lines, _ = counted(tmp_path, [[7, 7, 7], [-2, -2]])

    assert lines == ["7", "-2"]


def test_a_value_that_no_line_can_hold_is_left_out(tmp_path):
    lines, _ = counted(tmp_path, [["a\nb", "c", "c"]])

    assert lines == ["c"]


def test_the_order_does_not_depend_on_the_memory(tmp_path):
    random = np.random.default_rng(0)
    batches = [[f"id{value}" for value in random.zipf(1.3, 4000) % 20_000] for _ in range(10)]

    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    in_memory, _ = counted(tmp_path / "a", batches, min_count=2)
    on_disk, _ = counted(tmp_path / "b", batches, min_count=2, spilled=True)

    assert len(in_memory) > 1000
    assert in_memory == on_disk


def test_statistics_of_parts_are_those_of_the_whole():
    random = np.random.default_rng(0)
    numbers = random.normal(1e6, 3, 10_000)
    found = NumberStatistics()
    for part in np.array_split(numbers, 7):
        found.add(part, num_missing=1)
    found.add(np.array([np.nan]))

    assert found.mean == pytest.approx(numbers.mean(), rel=1e-12)
    assert found.deviation == pytest.approx(numbers.std(), rel=1e-9)
    assert (found.min_value, found.max_value) == (numbers.min(), numbers.max())
    assert (found.num_numbers, found.num_missing) == (10_000, 8)
    assert found.is_exact
    assert found.sample.tolist() == sorted(numbers.tolist())


def test_of_many_numbers_a_sample_is_kept_whose_ranks_are_right():
    random = np.random.default_rng(1)
    found = NumberStatistics()
    for _ in range(50):
        found.add(random.random(10_000))

    assert not found.is_exact
    assert len(found.sample) <= 65_536
    edges = quantile_boundaries(found.sample, 20)
    assert np.abs(np.array(edges) - np.arange(1, 20) / 20).max() < RANK_ERROR


def test_a_number_that_fills_an_interval_has_one_of_its_own():
    mostly_zero = np.sort(np.concatenate([np.zeros(900), np.arange(1.0, 101.0)]))

    edges = quantile_boundaries(mostly_zero, 11)

    assert edges == [1, 11, 21, 31, 41, 51, 61, 71, 81, 91]


def test_few_numbers_have_an_interval_each():
    assert quantile_boundaries(np.array([1.0, 1, 2, 5, 5]), 10) == [2, 5]
    assert quantile_boundaries(np.array([3.0, 3]), 10) == []
