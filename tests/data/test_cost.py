"""Batches whose rows cost no more than a limit together."""

import json
import logging
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import BudgetExceeded, DataError
from penstock.data.cut import CutCount
from penstock.data.row_cost import ColumnCost, cost_of_expression
from penstock.data.sections import Oversize
from penstock.readers.stream import locate
from penstock.runtime.budget import Share
from tests.data.costs import ColumnStream, costs_of, cut, cut_by_cost, cut_of, plain_cut
from tests.readers.samples import row_ids, take

MOST = 2**63 - 1


def test_a_batch_is_the_longest_prefix_that_fits() -> None:
    assert cut([3, 4, 5, 2, 8, 1]) == [[3, 4], [5, 2], [8, 1]]


@pytest.mark.parametrize("chunk_rows", [(12,), (1,) * 12, (5, 0, 7), (10, 2), (11, 1), (9, 3)], ids=str)
def test_a_batch_is_filled_however_the_rows_arrive(chunk_rows: tuple[int, ...]) -> None:
    assert cut([1] * 12, *chunk_rows) == [[1] * 10, [1] * 2]


def test_a_row_is_never_skipped_to_fit_a_later_one() -> None:
    assert cut([6, 5, 4, 1]) == [[6], [5, 4, 1]]


def test_a_batch_of_one_chunk_is_a_view_of_it() -> None:
    first, second = cut_of([5, 5, 5, 5])

    assert first.column("cost").buffers()[1].address == second.column("cost").buffers()[1].address


AWKWARD: dict[str, tuple[Callable[[], list[list[Any]]], list[list[Any]]]] = {
    "no rows": (lambda: cut([]), []),
    "one row": (lambda: cut([4]), [[4]]),
    "one row that costs nothing": (lambda: cut([0]), [[0]]),
    "empty chunks between full ones": (lambda: cut([5, 5, 5], 0, 1, 0, 0, 2, 0), [[5, 5], [5]]),
    "a cost equal to the limit": (lambda: cut([10, 10, 3, 7, 1]), [[10], [10], [3, 7], [1]]),
    "rows that cost nothing fit a full batch": (lambda: cut([4, 6, 0, 0, 1], 2, 1, 2), [[4, 6, 0, 0], [1]]),
    "all rows cost nothing": (lambda: cut([0] * 5, 2, 3), [[0] * 5]),
    "all rows cost nothing, with a cap": (lambda: cut([0] * 5, max_batch_rows=2), [[0, 0], [0, 0], [0]]),
    "an oversize row between others": (lambda: cut([3, 20, 5]), [[3], [20], [5]]),
    "oversize rows first and last": (lambda: cut([11, 1, 2, 12]), [[11], [1, 2], [12]]),
    "an oversize row at the start of a chunk": (lambda: cut([3, 20, 5], 1, 2), [[3], [20], [5]]),
    "an oversize row at the end of a chunk": (lambda: cut([3, 20, 5], 2, 1), [[3], [20], [5]]),
    "an oversize row is a chunk": (lambda: cut([3, 20, 5], 1, 1, 1), [[3], [20], [5]]),
    "all rows oversize": (lambda: cut([11, 12, 13], 2, 1), [[11], [12], [13]]),
    "all rows oversize and dropped": (lambda: cut([11, 12, 13], 2, 1, oversize="drop"), []),
    "a dropped row does not end a batch": (lambda: cut([3, 20, 5], oversize="drop"), [[3, 5]]),
    "dropped at the borders of chunks": (
        lambda: cut([20, 3, 20, 20, 5, 20], 1, 2, 1, 2, oversize="drop"),
        [[3, 5]],
    ),
    "uint8 costs": (lambda: cut([200] * 3, limit=250, kind=pa.uint8()), [[200]] * 3),
    "uint8 costs that sum past their type": (
        lambda: cut([200] * 3, limit=400, kind=pa.uint8()),
        [[200] * 2, [200]],
    ),
    "int8 costs": (lambda: cut([100] * 3, limit=250, kind=pa.int8()), [[100] * 2, [100]]),
    "uint64 costs past int64": (lambda: cut([5, 2**64 - 1, 5], kind=pa.uint64()), [[5], [2**64 - 1], [5]]),
    "int64 costs at their largest": (lambda: cut([MOST] * 3, limit=2**62), [[MOST]] * 3),
    "int64 costs whose sums leave int64": (lambda: cut([2**62] * 4, limit=2**62), [[2**62]] * 4),
    "int64 costs past the exact floats": (
        lambda: cut([2**53, 1, 1], limit=2**53 + 1),
        [[2**53, 1], [1]],
    ),
    "tenths add up as floats do": (
        lambda: cut([0.1] * 11, limit=1.0, kind=pa.float64()),
        [[0.1] * 10, [0.1]],
    ),
    "a float sum a little over the limit": (
        lambda: cut([0.1, 0.2], limit=0.3, kind=pa.float64()),
        [[0.1], [0.2]],
    ),
    "float16 costs past its largest": (
        lambda: [[len(batch)] for batch in cut([60000.0] * 3, limit=120_000, kind=pa.float16())],
        [[2], [1]],
    ),
    "decimal costs": (
        lambda: [[len(batch)] for batch in cut([Decimal("2.50")] * 5, kind=pa.decimal128(5, 2))],
        [[4], [1]],
    ),
    "a limit below every cost": (lambda: cut([1, 2], limit=0.5), [[1], [2]]),
    "a limit that is no whole number": (lambda: cut([5, 5, 1], limit=10.5), [[5, 5], [1]]),
    "a dictionary of costs": (
        lambda: cut([5, 5, 5], kind=pa.dictionary(pa.int8(), pa.int32())),
        [[5, 5], [5]],
    ),
}


@pytest.mark.parametrize(("give", "expected"), AWKWARD.values(), ids=AWKWARD.keys())
def test_awkward(give: Callable[[], list[list[Any]]], expected: list[list[Any]]) -> None:
    assert give() == expected


def test_rows_are_capped() -> None:
    assert cut([1] * 7, max_batch_rows=3) == [[1] * 3, [1] * 3, [1]]
    assert cut([1] * 7, 2, 2, 2, 1, max_batch_rows=3) == [[1] * 3, [1] * 3, [1]]
    assert cut([4] * 7, max_batch_rows=3) == [[4] * 2, [4] * 2, [4] * 2, [4]]


def test_a_batch_that_has_all_rows_it_may_have_waits_for_no_more() -> None:
    source = costs_of([0] * 6, 2, 2, 2)
    next(iter(cut_by_cost(source, ColumnCost("cost"), 10, max_batch_rows=2)))

    assert source.position.row == 2


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([3, 4, 5, 2, 8, 1], [[3, 4], [5, 2]]),
        ([5, 5, 5, 5], [[5, 5], [5, 5]]),
        ([4, 20], [[4], [20]]),
        ([1], []),
        ([], []),
    ],
    ids=["short", "full", "alone", "one row", "no rows"],
)
def test_only_the_last_batch_is_dropped_and_only_where_it_is_short(
    costs: list[int], expected: list[list[int]]
) -> None:
    stage = cut_of(costs, drop_remainder=True)

    assert [batch.column("cost").to_pylist() for batch in stage] == expected
    assert stage.position.row == len(costs)


def test_oversize_rows_are_counted_and_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    stage = cut_of([3, 20, 5, 30], 1, 3, file_paths=["a", "b", "c", "data/part-3.parquet"])
    with caplog.at_level(logging.WARNING):
        list(stage)

    assert stage.num_oversize == 2
    [message] = [record.getMessage() for record in caplog.records]
    assert message == (
        "data/part-3.parquet: row 1: column 'cost': costs 20 but a batch may cost 10; "
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
        cut([3, 20, 5], oversize="error", file_paths=["a", "b", "c", "d"])

    assert str(caught.value) == (
        "d: row 1: column 'cost': costs 20 but a batch may cost 10; raise data_config.batch_cost_size, or set "
        "data_config.oversize to alone or drop"
    )


@pytest.mark.parametrize(
    ("values", "kind", "problem"),
    [
        ([1, None], pa.int32(), "is null"),
        ([1, None], pa.float32(), "is null"),
        ([1, None], pa.uint64(), "is null"),
        ([None], pa.null(), "is null"),
        ([1, -2], pa.int8(), "value -2 is not a cost: it must be a finite number from 0 on"),
        ([1, -0.5], pa.float64(), "value -0.5 is not a cost: it must be a finite number from 0 on"),
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
    assert str(caught.value) == f"file 3: row {row}: column 'cost': {problem}; {advice}"
    assert [len(batch) for batch in cut(values, kind=kind, null_cost=2)] == [len(values)]
    assert [len(batch) for batch in cut(values, kind=kind, null_cost=9.5)] == [1] * len(values)


def test_a_row_without_a_cost_may_cost_a_part_of_one() -> None:
    assert cut([1, None, None, None], limit=2, null_cost=0.5) == [[1, None, None], [None]]


@pytest.mark.parametrize("kind", [pa.string(), pa.bool_(), pa.date32(), pa.list_(pa.int64())], ids=str)
def test_a_cost_column_holds_numbers(kind: pa.DataType) -> None:
    with pytest.raises(DataError) as caught:
        cut([], kind=kind)
    assert str(caught.value) == f"column 'cost': is of type {kind}; a cost is a number"


def test_a_missing_cost_column_names_the_nearest() -> None:
    with pytest.raises(DataError, match=r"there is no column 'costs'; did you mean 'cost'\?"):
        cut_by_cost(costs_of([1]), ColumnCost("costs"), 10)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"limit": 0}, "a batch may cost more than 0 and at most 2**62, not 0"),
        ({"limit": np.nan}, "a batch may cost more than 0 and at most 2**62, not nan"),
        ({"limit": 2**63}, "a batch may cost more than 0 and at most 2**62, not 9223372036854775808"),
        ({"max_batch_rows": 0}, "a batch needs at least one row, not 0"),
        ({"null_cost": -1}, "the cost of a row without one is a number from 0 on, not -1"),
    ],
)
def test_rules_that_no_batch_can_keep(rules: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        cut([1], **rules)


def test_computed_costs() -> None:
    clicks = pa.array([[1] * 6, [], [1] * 4, None, [1]], pa.list_(pa.int64()))
    stage = cut_by_cost(ColumnStream(clicks, name="clicks"), cost_of_expression("sum_of_lengths(clicks)"), 10)

    assert [[locate(row)[1] for row in row_ids([batch])] for batch in stage] == [[0, 1, 2, 3], [4]]


def test_rows_that_wait_are_leased() -> None:
    share = Share("cut", 150)
    stage = cut_by_cost(costs_of([1] * 12, 3, 3, 3, 3), ColumnCost("cost"), 10, share=share)

    assert [batch.num_rows for batch in stage] == [10, 2]
    assert (share.peak_bytes, share.held_bytes) == (9 * 16, 0)


def test_an_iteration_that_was_left_alone_does_not_block_the_next() -> None:
    share = Share("cut", 100)
    stage = cut_by_cost(costs_of([5] * 6, 3, 3), ColumnCost("cost"), 10, share=share)
    abandoned = iter(stage)
    next(abandoned)
    next(abandoned)
    stage.set_epoch(1)

    assert [batch.num_rows for batch in stage] == [2, 2, 2]
    assert share.held_bytes == 0


def test_rows_that_cost_nothing_do_not_fill_the_memory() -> None:
    share = Share("cut", 100)
    with pytest.raises(BudgetExceeded) as caught:
        cut([0] * 12, 3, 3, 3, 3, share=share)

    assert str(caught.value) == (
        "9 rows take 144B and do not fill a batch yet, but cut may hold 100B; set data_config.max_batch_rows, or "
        "lower data_config.batch_cost_size"
    )
    assert share.held_bytes == 0


def test_batches_are_counted_without_moving() -> None:
    stage = cut_of([3, 4, 20, 1, 1, 1], 4, 2)
    take(stage, 1)

    assert stage.count() == CutCount(num_batches=2, num_rows=4, max_rows=3, num_oversize=1)
    assert stage.position.row == 2
    assert len(list(stage)) == 2
    assert stage.count() == CutCount()


def test_many_small_batches_of_one_chunk_are_cut_in_time_that_grows_with_their_number() -> None:
    """A chunk of a million rows would take minutes if each batch looked at all that are left."""
    stage = cut_of(np.ones(1_000_000, np.int64), limit=20)

    assert stage.count() == CutCount(num_batches=50_000, num_rows=1_000_000, max_rows=20)


any_costs = st.one_of(
    st.tuples(st.just(pa.uint8()), st.lists(st.integers(0, 255), max_size=60)),
    st.tuples(st.just(pa.int64()), st.lists(st.integers(0, 12), max_size=60)),
    st.tuples(st.just(pa.int64()), st.lists(st.sampled_from([0, 1, 2**61, 2**62, MOST]), max_size=60)),
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

    expected = plain_cut(values, limit, max_rows, oversize, drop_remainder)
    whole, before, after = make(), make(), make()
    counts = whole.count()
    batches = list(whole)
    taken = take(before, data.draw(st.integers(0, len(batches))))
    after.load_state_dict(json.loads(json.dumps(before.state_dict())))
    resumed = taken + list(after)

    assert [[locate(row)[1] for row in row_ids([batch])] for batch in batches] == expected.batches
    assert resumed == batches
    assert whole.num_oversize == before.num_oversize + after.num_oversize == expected.num_oversize
    assert whole.position.row == after.position.row == len(values)
    assert counts == CutCount(
        len(batches),
        sum(map(len, expected.batches)),
        max(map(len, expected.batches), default=0),
        expected.num_oversize,
    )
