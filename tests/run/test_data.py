"""From the data section of a run to batches."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB
from penstock.data.memory_plan import StageShares
from penstock.features.parser import Parser
from penstock.readers.files import list_files
from penstock.run.data import (
    DataSource,
    find_files,
    open_source,
    scoring_batches,
    shuffle_rows,
    training_batches,
)
from penstock.run.run_config import DataConfig
from penstock.runtime.budget import MemoryBudget

PARSER = Parser([], label_fields=["click"])


@pytest.fixture
def source(tmp_path) -> DataSource:
    """Ten rows in two files, numbered from 0 by their label."""
    for index, labels in enumerate([range(6), range(6, 10)]):
        pq.write_table(
            pa.table({"click": list(labels), "other": ["x"] * len(labels)}), tmp_path / f"{index}.parquet"
        )
    return open_source(data(), list_files(str(tmp_path)), PARSER)


@pytest.fixture
def shares() -> StageShares:
    budget = MemoryBudget(64 * MIB)
    budget.share("reader", 16 * MIB)
    budget.share("prefetch", 16 * MIB)
    budget.share("shuffle", 16 * MIB)
    return StageShares.of(budget)


def data(**options) -> DataConfig:
    return DataConfig(batch_size=4, label_fields=["click"], **options)


def labels(batches) -> list[list[int]]:
    with batches:
        return [batch.labels["click"].tolist() for batch in batches]


def test_paths_and_sizes_of_the_files(source):
    sizes = {path.rpartition("/")[2]: size for path, size in source.fingerprint().items()}

    assert list(sizes) == ["0.parquet", "1.parquet"]
    assert all(size > 0 for size in sizes.values())


def test_a_path_that_a_command_needs():
    with pytest.raises(
        ConfigError, match=r"^eval_input_path: is required by this command; set it, or give --eval_"
    ):
        find_files("", "eval_input_path")


@pytest.mark.parametrize(("drop_remainder", "num_batches"), [(False, 3), (True, 2)])
def test_batches_are_counted_before_they_are_read(source, drop_remainder, num_batches):
    assert source.num_batches(data(drop_remainder=drop_remainder)) == num_batches


def test_the_shuffle_buffer_is_weighed_in_rows(source):
    assert shuffle_rows(data(), source) == 0
    assert 10_000 < shuffle_rows(data(shuffle=True, shuffle_buffer="1MiB"), source) <= 2**20 // 8


def test_the_old_shuffle_buffer_counts_batches(source):
    assert shuffle_rows(data(shuffle=True, shuffle_buffer_size=32), source) == 32 * 4


def test_batches_in_the_order_of_the_files(source, shares):
    batches = training_batches(data(), source, shares, num_shuffle_rows=0)

    assert labels(batches) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_the_remainder_is_dropped_when_asked_for(source, shares):
    batches = training_batches(data(drop_remainder=True), source, shares, num_shuffle_rows=0)

    assert labels(batches) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_shuffled_batches_hold_every_row_once_in_an_order_that_the_seed_decides(source, shares):
    def shuffled(seed: int) -> list[int]:
        batches = training_batches(data(shuffle=True, seed=seed), source, shares, num_shuffle_rows=10)
        return [label for batch in labels(batches) for label in batch]

    assert sorted(shuffled(7)) == list(range(10))
    assert shuffled(7) == shuffled(7)
    assert shuffled(7) != list(range(10))


def test_scoring_keeps_the_order_and_every_row_though_training_shuffles(source, shares):
    kept = open_source(data(shuffle=True, drop_remainder=True), source.scanned.files, PARSER, ["click"])

    with scoring_batches(kept, shares, batch_size=3) as batches:
        found = [batch.reserves.get()["click"].to_pylist() for batch in batches]

    assert found == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]
