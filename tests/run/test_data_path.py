"""The whole data path of a run: every row once, limits kept, and resuming as if nothing had happened."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.sizes import MIB
from penstock.data.chain import open_rows
from penstock.data.memory_plan import share_data_path
from penstock.features.parser import Parser
from penstock.readers.files import list_files
from penstock.readers.order import Shard
from penstock.readers.stream import RecordStream
from penstock.run.data import DataSource, open_source, resumed_state
from penstock.run.run_config import DataConfig
from penstock.runtime.budget import MemoryBudget
from tests.readers.samples import take

PARSER = Parser([], label_fields=["number"])


@dataclass(frozen=True)
class Case:
    """Files, how they are read, and on how many ranks."""

    rows_per_file: Sequence[int] = (10,)
    row_group_rows: int = 4
    batch_rows: int = 3
    costs: Sequence[int] = (1,)
    """Of the rows, over and over again."""
    cost_limit: int | None = None
    max_batch_rows: int | None = None
    window_rows: int = 0
    num_ranks: int = 1

    @property
    def num_rows(self) -> int:
        return sum(self.rows_per_file)

    def cost_of(self, number: int) -> int:
        return self.costs[number % len(self.costs)]

    def config(self) -> DataConfig:
        by_cost = {} if self.cost_limit is None else {
            "sample_cost_field": "cost",
            "batch_cost_size": self.cost_limit,
            "max_batch_rows": self.max_batch_rows,
        }  # fmt: skip
        return DataConfig(
            batch_size=self.batch_rows,
            label_fields=["number"],
            shuffle=self.window_rows > 0,
            seed=3,
            **by_cost,
        )

    def write(self, folder: Path) -> DataSource:
        start = 0
        for index, num_rows in enumerate(self.rows_per_file):
            numbers = list(range(start, start + num_rows))
            table = pa.table(
                {"number": pa.array(numbers, pa.int64()),
                 "cost": pa.array([self.cost_of(number) for number in numbers])}
            )  # fmt: skip
            pq.write_table(table, folder / f"{index}.parquet", row_group_size=self.row_group_rows)
            start += num_rows
        return open_source(self.config(), list_files(str(folder)), PARSER)


class Rank:
    """One rank's record batches, with a budget of its own."""

    def __init__(self, case: Case, source: DataSource, index: int, num_ranks: int) -> None:
        self.source, self.shard = source, Shard(index, num_ranks)
        self.budget = MemoryBudget(64 * MIB)
        share_data_path(
            self.budget,
            {"": source.scanned},
            shuffle_rows=case.window_rows,
            prefetch_bytes=MIB,
            by_cost=case.cost_limit is not None,
        )
        self.stream: RecordStream = open_rows(
            source.scanned,
            self.budget,
            source.cut,
            shuffle_rows=case.window_rows,
            seed=3,
            shard=self.shard,
        )

    def load(self, states: list[dict]) -> None:
        self.stream.load_state_dict(resumed_state(states, self.source, self.budget, self.shard))

    def check_limits(self) -> None:
        for share in self.budget.shares.values():
            assert share.peak_bytes <= share.limit_bytes


def ranks_of(case: Case, source: DataSource, num_ranks: int) -> list[Rank]:
    return [Rank(case, source, index, num_ranks) for index in range(num_ranks)]


def numbers(batches: list[pa.RecordBatch]) -> list[list[int]]:
    return [batch.column("number").to_pylist() for batch in batches]


def flat(batches: list[pa.RecordBatch]) -> list[int]:
    return [number for batch in numbers(batches) for number in batch]


cases = st.builds(
    Case,
    rows_per_file=st.lists(st.integers(0, 30), min_size=1, max_size=4),
    row_group_rows=st.integers(1, 12),
    batch_rows=st.integers(1, 12),
    costs=st.lists(st.integers(0, 9), min_size=1, max_size=7),
    cost_limit=st.none() | st.integers(1, 20),
    max_batch_rows=st.none() | st.integers(1, 6),
    window_rows=st.just(0) | st.integers(1, 40),
    num_ranks=st.integers(1, 4),
)
paths = settings(max_examples=35)


@paths
@given(case=cases, epoch=st.integers(0, 2))
def test_every_row_is_in_one_batch_of_one_rank_and_batches_keep_their_limit(
    tmp_path_factory: pytest.TempPathFactory, case: Case, epoch: int
) -> None:
    source = case.write(tmp_path_factory.mktemp("data"))
    seen = []
    for rank in ranks_of(case, source, case.num_ranks):
        rank.stream.set_epoch(epoch)
        batches = list(rank.stream)
        seen += flat(batches)
        rank.check_limits()
        for batch in numbers(batches):
            assert batch
            if case.cost_limit is None:
                assert len(batch) <= case.batch_rows
            else:
                assert len(batch) <= (case.max_batch_rows or case.num_rows)
                assert len(batch) == 1 or sum(map(case.cost_of, batch)) <= case.cost_limit

    assert sorted(seen) == list(range(case.num_rows))


@paths
@given(case=cases, data=st.data())
def test_a_rank_goes_on_as_if_it_had_not_stopped(
    tmp_path_factory: pytest.TempPathFactory, case: Case, data: st.DataObject
) -> None:
    source = case.write(tmp_path_factory.mktemp("data"))
    ranks, resumed = ranks_of(case, source, case.num_ranks), ranks_of(case, source, case.num_ranks)
    expected = [list(rank.stream) for rank in ranks_of(case, source, case.num_ranks)]
    taken = [take(rank.stream, data.draw(st.integers(0, len(batches))))
             for rank, batches in zip(ranks, expected, strict=True)]  # fmt: skip
    states = json.loads(json.dumps([rank.stream.state_dict() for rank in ranks]))
    for rank in resumed:
        rank.load(states)

    assert [first + list(rank.stream) for first, rank in zip(taken, resumed, strict=True)] == expected
