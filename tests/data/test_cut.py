"""Batches of a number of rows, and of rows that cost no more than a limit together."""

import json
import logging
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import DataError
from penstock.data.cut import CostCut, RowCut, join
from penstock.data.row_cost import ColumnCost
from penstock.data.sections import Oversize
from penstock.readers.stream import locate
from penstock.runtime.budget import Share
from tests.data.streams import ColumnStream, cut_by_cost, stream_of_sizes
from tests.readers.samples import numbers, row_ids, take


def costs_of(values: Sequence[Any], *chunk_rows: int, kind: pa.DataType | None = None) -> ColumnStream:
    """A stream with these costs, in one chunk or in chunks of these sizes."""
    return ColumnStream(pa.array(values, kind or pa.int64()), chunk_rows or None)


def cut(values: Sequence[Any], *chunk_rows: int, limit: float = 10, **rules: Any) -> list[list[Any]]:
    """The costs of each batch."""
    return [batch.column("cost").to_pylist() for batch in cut_of(values, *chunk_rows, limit=limit, **rules)]


def cut_of(
    values: Sequence[Any], *chunk_rows: int, limit: float = 10, kind: pa.DataType | None = None, **rules: Any
) -> CostCut:
    """The stage over a stream with these costs."""
    return cut_by_cost(costs_of(values, *chunk_rows, kind=kind), ColumnCost("cost"), limit, **rules)


def plain_cut(
    costs: Sequence[float], limit: float, max_rows: int | None, oversize: str, drop_remainder: bool
) -> tuple[list[list[int]], int]:
    """Row after row: the batches as row numbers, and how many rows cost too much."""
    batches: list[list[int]] = []
    num_oversize = 0
    batch: list[int] = []
    total: float = 0
    for row, cost in enumerate(costs):
        if cost > limit:
            num_oversize += 1
        is_alone = cost > limit and oversize == "alone"
        if is_alone or (cost <= limit and (total + cost > limit or len(batch) == max_rows)):
            batches += [batch] if batch else []
            batch, total = [], 0
        if is_alone:
            batches.append([row])
        elif cost <= limit:
            batch.append(row)
            total += cost
    if batch and not (drop_remainder and total < limit and len(batch) != max_rows):
        batches.append(batch)
    return batches, num_oversize


AWKWARD: dict[str, tuple[Callable[[], list[list[Any]]], list[list[Any]]]] = {
    "rows that cost nothing fit a full batch": (lambda: cut([4, 6, 0, 0, 1], 2, 1, 2), [[4, 6, 0, 0], [1]]),
    "a dropped row does not end a batch": (lambda: cut([3, 20, 5], oversize="drop"), [[3, 5]]),
    "uint64 costs past int64": (lambda: cut([5, 2**64 - 1, 5], kind=pa.uint64()), [[5], [2**64 - 1], [5]]),
    "int64 costs past the exact floats": (lambda: cut([2**53, 1, 1], limit=2**53 + 1), [[2**53, 1], [1]]),
    "a float sum a little over the limit": (
        lambda: cut([0.1, 0.2], limit=0.3, kind=pa.float64()),
        [[0.1], [0.2]],
    ),
    "decimal costs": (
        lambda: [[len(batch)] for batch in cut([Decimal("2.50")] * 5, kind=pa.decimal128(5, 2))],
        [[4], [1]],
    ),
    "a limit that is no whole number": (lambda: cut([5, 5, 1], limit=10.5), [[5, 5], [1]]),
    "a dictionary of costs": (
        lambda: cut([5, 5, 5], kind=pa.dictionary(pa.int8(), pa.int32())),
        [[5, 5], [5]],
    ),
}


@pytest.mark.parametrize(("give", "expected"), AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward(give: Callable[[], list[list[Any]]], expected: list[list[Any]]) -> None:
    assert give() == expected


def test_a_batch_that_has_all_rows_it_may_have_waits_for_no_more() -> None:
    source = costs_of([0] * 6, 2, 2, 2)
    next(iter(cut_by_cost(source, ColumnCost("cost"), 10, max_batch_rows=2)))

    assert source.position.row == 2


def test_oversize_rows_are_counted_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = cut_of([3, 20, 5, 30], 1, 3)
    with caplog.at_level(logging.WARNING):
        list(stage)

    assert stage.num_oversize == 2
    [message] = [record.getMessage() for record in caplog.records]
    assert message == (
        "d: row 1: column 'cost': costs 20 but a batch may cost 10; "
        "such a row is a batch of its own (data_config.oversize)"
    )


def test_dropped_rows_are_counted_when_they_are_passed(caplog: pytest.LogCaptureFixture) -> None:
    stage = cut_of([20, 3, 20, 8, 20, 20], oversize=Oversize.drop)
    batches = iter(stage)

    assert next(batches).column("cost").to_pylist() == [3]
    assert (stage.position.row, stage.num_oversize) == (2, 1)
    assert next(batches).column("cost").to_pylist() == [8]
    assert (stage.position.row, stage.num_oversize) == (6, 4)
    assert list(batches) == []
    assert caplog.records[0].getMessage().endswith("such a row is left out (data_config.oversize)")


def test_an_oversize_row_can_be_an_error() -> None:
    with pytest.raises(DataError) as caught:
        cut([3, 20, 5], oversize="error")

    assert str(caught.value) == (
        "d: row 1: column 'cost': costs 20 but a batch may cost 10; raise data_config.batch_cost_size, or set "
        "data_config.oversize to alone or drop"
    )


@pytest.mark.parametrize(
    ("values", "kind", "problem"),
    [
        ([1, None], pa.int32(), "is null"),
        ([None], pa.null(), "is null"),
        ([1, -2], pa.int8(), "value -2 is not a cost: it must be a finite number from 0 on"),
        ([1, np.nan], pa.float64(), "value nan is not a cost: it must be a finite number from 0 on"),
        ([1, np.inf], pa.float64(), "value inf is not a cost: it must be a finite number from 0 on"),
    ],
    ids=str,
)
def test_a_row_without_a_cost_is_named_or_gets_one(
    values: list[Any], kind: pa.DataType, problem: str
) -> None:
    with pytest.raises(DataError) as caught:
        cut(values, kind=kind)

    row = len(values) - 1
    advice = "correct the file, or set data_config.null_cost"
    assert str(caught.value) == f"d: row {row}: column 'cost': {problem}; {advice}"
    assert [len(batch) for batch in cut(values, kind=kind, null_cost=2)] == [len(values)]
    assert [len(batch) for batch in cut(values, kind=kind, null_cost=9.5)] == [1] * len(values)


@pytest.mark.parametrize("kind", [pa.string(), pa.bool_(), pa.date32(), pa.list_(pa.int64())], ids=str)
def test_a_cost_column_holds_numbers(kind: pa.DataType) -> None:
    with pytest.raises(DataError) as caught:
        cut([], kind=kind)
    assert str(caught.value) == f"column 'cost': is of type {kind}; a cost is a number"


def test_rows_that_wait_are_leased() -> None:
    share = Share("cut", 150)
    stage = cut_by_cost(costs_of([1] * 12, 3, 3, 3, 3), ColumnCost("cost"), 10, share=share)

    assert [batch.num_rows for batch in stage] == [10, 2]
    assert (share.peak_bytes, share.held_bytes) == (9 * 16, 0)


def test_many_small_batches_of_one_chunk_are_cut_in_time_that_grows_with_their_number() -> None:
    """A chunk of a million rows would take minutes if each batch looked at all that are left."""
    stage = cut_of(np.ones(1_000_000, np.int64), limit=20)

    assert stage.count() == 50_000


any_costs = st.one_of(
    st.tuples(st.just(pa.uint8()), st.lists(st.integers(0, 255), max_size=60)),
    st.tuples(st.just(pa.int64()), st.lists(st.integers(0, 12), max_size=60)),
    st.tuples(st.just(pa.int64()), st.lists(st.sampled_from([0, 1, 2**61, 2**62, 2**63 - 1]), max_size=60)),
    st.tuples(st.just(pa.float64()), st.lists(st.floats(0, 300), max_size=60)),
    st.tuples(st.just(pa.float32()), st.lists(st.floats(0, 2, width=32), max_size=60)),
)


@settings(max_examples=150)
@given(
    costs=any_costs,
    limit=st.one_of(st.integers(1, 600), st.floats(0.01, 40), st.just(2**62)),
    max_rows=st.none() | st.integers(1, 9),
    oversize=st.sampled_from(["alone", "drop"]),
    drop_remainder=st.booleans(),
    data=st.data(),
)
def test_cut_as_row_after_row_and_resumed_anywhere(
    costs: tuple[pa.DataType, list[float]],
    limit: float,
    max_rows: int | None,
    oversize: str,
    drop_remainder: bool,
    data: st.DataObject,
) -> None:
    kind, values = costs
    cuts = sorted(data.draw(st.lists(st.integers(0, len(values)), max_size=12)))
    chunk_rows = np.diff([0, *cuts, len(values)]).tolist()

    def make():
        return cut_of(
            values,
            *chunk_rows,
            kind=kind,
            limit=limit,
            max_batch_rows=max_rows,
            oversize=oversize,
            drop_remainder=drop_remainder,
        )

    expected, num_oversize = plain_cut(values, limit, max_rows, oversize, drop_remainder)
    whole, before, after = make(), make(), make()
    num_batches = whole.count()
    batches = list(whole)
    taken = take(before, data.draw(st.integers(0, len(batches))))
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    resumed = taken + list(after)

    assert [[locate(row)[1] for row in row_ids([batch])] for batch in batches] == expected
    assert resumed == batches
    assert whole.num_oversize == before.num_oversize + after.num_oversize == num_oversize
    assert whole.position.row == after.position.row == len(values)
    assert num_batches == len(batches)


def test_the_last_batch_is_short_or_dropped() -> None:
    assert numbers(RowCut(stream_of_sizes([3]), 2)) == [[0, 1], [2]]
    assert numbers(RowCut(stream_of_sizes([3]), 2, drop_remainder=True)) == [[0, 1]]


def test_a_batch_inside_one_source_batch_is_a_view_of_it() -> None:
    source = stream_of_sizes([10])
    first, second = RowCut(source, 5)

    assert first.column("number").buffers()[1].address == second.column("number").buffers()[1].address
    assert second.column("number").offset == 5


def test_dictionaries_are_unified() -> None:
    first, second = (
        pa.RecordBatch.from_pydict({"word": pa.array(words).dictionary_encode()})
        for words in (["a", "b"], ["c", "a"])
    )

    assert join([first, second]).column("word").to_pylist() == ["a", "b", "c", "a"]
