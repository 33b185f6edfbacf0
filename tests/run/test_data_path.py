"""The whole data path of a run: every row once, limits kept, and resuming as if nothing had happened."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.data.memory_plan import StageShares, share_data_path, shuffle_bytes_of
from penstock.data.sections import Oversize
from penstock.features.parser import Parser
from penstock.readers.files import list_files
from penstock.readers.order import Shard
from penstock.readers.stream import RecordStream
from penstock.run.data import DataSource, open_source, resumed_state, training_rows
from penstock.run.run_config import DataConfig
from penstock.runtime.budget import MemoryBudget
from tests.readers.samples import take

INT64 = pa.int64()
PARSER = Parser([], label_fields=["number"])


@dataclass(frozen=True)
class Case:
    """Files, how they are read, and on how many ranks."""

    rows_per_file: Sequence[int] = (10,)
    row_group_rows: int = 4
    batch_rows: int = 3
    costs: Sequence[object] = (1,)
    """Of the rows, over and over again."""
    cost_type: pa.DataType = INT64
    cost_limit: int | None = None
    oversize: Oversize = Oversize.alone
    null_cost: float | None = None
    max_batch_rows: int | None = None
    window_rows: int = 0
    drop_remainder: bool = False
    num_ranks: int = 1

    @property
    def num_rows(self) -> int:
        return sum(self.rows_per_file)

    def cost_of(self, number: int) -> object:
        return self.costs[number % len(self.costs)]

    def config(self) -> DataConfig:
        by_cost = {} if self.cost_limit is None else {
            "sample_cost_field": "cost",
            "batch_cost_size": self.cost_limit,
            "oversize": self.oversize,
            "null_cost": self.null_cost,
            "max_batch_rows": self.max_batch_rows,
        }  # fmt: skip
        return DataConfig(
            batch_size=self.batch_rows,
            label_fields=["number"],
            shuffle=self.window_rows > 0,
            seed=3,
            drop_remainder=self.drop_remainder,
            **by_cost,
        )

    def write(self, folder: Path) -> DataSource:
        start = 0
        for index, num_rows in enumerate(self.rows_per_file):
            numbers = list(range(start, start + num_rows))
            table = pa.table(
                {"number": pa.array(numbers, pa.int64()),
                 "cost": pa.array([self.cost_of(number) for number in numbers], self.cost_type)}
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
            shuffle_bytes=shuffle_bytes_of(source.scanned, case.window_rows),
            prefetch_bytes=MIB,
            by_cost=case.cost_limit is not None,
        )
        self.shares = StageShares.of(self.budget)
        self.stream: RecordStream = training_rows(
            case.config(), source, self.shares, case.window_rows, self.shard
        )

    def load(self, states: list[dict]) -> None:
        self.stream.load_state_dict(resumed_state(states, self.source, self.shares, self.shard))

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


AWKWARD = {
    "no rows": (Case(rows_per_file=[0]), []),
    "fewer rows than ranks": (Case(rows_per_file=[2], num_ranks=4), [[0], [1]]),
    "empty files between full ones": (Case(rows_per_file=[0, 2, 0, 0, 3, 0]), [[0, 1, 2], [3, 4]]),
    "drop_remainder drops everything": (Case(rows_per_file=[2], drop_remainder=True), []),
    "oversize rows at chunk borders": (
        Case([4, 4], costs=[99, 1, 1, 99], cost_limit=10), [[0], [1, 2], [3], [4], [5, 6], [7]]
    ),
    "oversize rows at chunk borders, dropped": (
        Case([4, 4], costs=[99, 1, 1, 99], cost_limit=10, oversize=Oversize.drop), [[1, 2, 5, 6]]
    ),
    "NaN costs with a value": (
        Case([4], costs=[float("nan"), 6.0], cost_type=pa.float64(), cost_limit=10, null_cost=4), [[0, 1], [2, 3]]
    ),
    "a cost at the end of int64": (Case([2], costs=[2**63 - 1], cost_limit=2**62), [[0], [1]]),
    "costs summed over files": (Case([1, 1, 1, 1], costs=[5], cost_limit=15), [[0, 1, 2], [3]]),
}  # fmt: skip


@pytest.mark.parametrize(("case", "expected"), AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward_cases_by_name(case: Case, expected: list[list[int]], tmp_path: Path) -> None:
    source = case.write(tmp_path)
    found = [batch for rank in ranks_of(case, source, case.num_ranks) for batch in numbers(list(rank.stream))]
    shuffled = replace(case, window_rows=3)
    mixed = [row for rank in ranks_of(shuffled, source, case.num_ranks) for row in flat(list(rank.stream))]

    assert found == expected
    assert len(mixed) == len(set(mixed)) == sum(map(len, expected))


@pytest.mark.parametrize(
    ("cost", "cost_type", "problem"),
    [(None, pa.int64(), "null"), (float("nan"), pa.float64(), "nan"), (-1, pa.int64(), "-1")],
    ids=["null", "NaN", "negative"],
)
def test_a_bad_cost_names_file_and_row(
    cost: object, cost_type: pa.DataType, problem: str, tmp_path: Path
) -> None:
    case = Case([4, 4], costs=[1, 1, 1, 1, 1, 1, cost, 1], cost_type=cost_type, cost_limit=10)
    source = case.write(tmp_path)

    with pytest.raises(DataError, match=rf"1\.parquet: row 2: column 'cost'.*{problem}"):
        list(ranks_of(case, source, 1)[0].stream)
