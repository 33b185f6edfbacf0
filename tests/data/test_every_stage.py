"""What holds for every stage. A new stage adds one row to EVERY_STAGE."""

import json
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import CheckpointError
from penstock.config.sizes import MIB
from penstock.data.cut import RowCut
from penstock.data.filter import Filter, PartOf, Passes
from penstock.data.prefetch import Prefetch, ReadAhead
from penstock.data.row_cost import ColumnCost, SequenceLength
from penstock.data.shuffle import Bucketing, Shuffle, ShuffleQuality
from penstock.readers.order import Blocks
from penstock.readers.stream import RecordStream, Stream
from penstock.runtime.budget import Share
from tests.data.streams import cut_by_cost, stream_of_sizes
from tests.readers.samples import flat, row_ids, take

ONES = SequenceLength("word", separator="1")
"""Lengths that differ: one more than the text has ones."""

NO_FOURS = [Passes(pc.bit_wise_and(pc.field("n"), 3) != 0, {"n": "number"})]
"""Leaves every fourth number out."""


def is_no_four(batch: pa.RecordBatch) -> pa.Array:
    return pc.not_equal(pc.bit_wise_and(batch["number"], 3), 0)


Make = Callable[[RecordStream], Stream]


def _prefetch(source: RecordStream) -> Stream:
    return Prefetch(source, Share("prefetch", 500))


EVERY_STAGE: dict[str, Make] = {
    "cut_by_rows": lambda source: RowCut(source, 3),
    "cut_by_rows, one row": lambda source: RowCut(source, 1),
    "cut_by_rows, all rows": lambda source: RowCut(source, 1000),
    "cut_by_cost": lambda source: cut_by_cost(source, ColumnCost("number"), 12),
    "cut_by_cost, within a share": lambda source: cut_by_cost(
        source, ColumnCost("number"), 3000, share=Share("cut", MIB)
    ),
    "cut_by_cost, two rows": lambda source: cut_by_cost(
        Shuffle(source, 5, seed=7), ColumnCost("number"), 1e9, max_batch_rows=2
    ),
    "shuffle": lambda source: Shuffle(source, 5, seed=7),
    "shuffle, all rows": lambda source: Shuffle(source, 1000, seed=7),
    "shuffle, by length": lambda source: Shuffle(source, 5, seed=7, bucketing=Bucketing(ONES, 2)),
    "shuffle, by length, all rows": lambda source: Shuffle(source, 99, seed=7, bucketing=Bucketing(ONES, 4)),
    "prefetch": _prefetch,
    "read_ahead": lambda source: ReadAhead(source, Share("read ahead", 500)),
    "shuffle, measured": lambda source: Shuffle(
        source, 5, seed=7, batch_rows=2, quality=ShuffleQuality(Blocks.of([(0, 0, 10**6)]), "number")
    ),
    "read_ahead under a shuffle": lambda source: Shuffle(
        ReadAhead(source, Share("read ahead", 500)), 5, seed=7
    ),
    "all": lambda source: _prefetch(RowCut(Shuffle(source, 7, seed=7), 4)),
    "filter": lambda source: Filter(source, NO_FOURS),
    "filter, by a function": lambda source: Filter(source, [Passes(is_no_four, {"number": "number"})]),
    "filter, cut by rows": lambda source: RowCut(Filter(source, NO_FOURS), 2),
    "filter, shuffled, cut by cost": lambda source: cut_by_cost(
        Filter(Shuffle(source, 5, seed=7), NO_FOURS), ColumnCost("number"), 3000, share=Share("cut", MIB)
    ),
    "filter, of a part": lambda source: RowCut(Filter(source, [PartOf(0, 1, "word", 1), *NO_FOURS]), 2),
}
SIZES = [4, 0, 1, 7, 3]


def given_by(make: Make, numbers: range) -> list[int]:
    """The numbers that a stage gives out of these: all of them, unless it is a filter."""
    is_filter = any(each is make for name, each in EVERY_STAGE.items() if name.startswith("filter"))
    return [number for number in numbers if not is_filter or number % 4]


each_stage = pytest.mark.parametrize("make", EVERY_STAGE.values(), ids=EVERY_STAGE.keys())


def _opened(make: Make, sizes: list[int]) -> AbstractContextManager[Stream]:
    """A stage over consecutive numbers; closed at the end where it needs that."""
    stage = make(stream_of_sizes(sizes))
    return closing(stage) if hasattr(stage, "close") else nullcontext(stage)


@each_stage
def test_resumes_after_every_batch_over_two_epochs(make: Make) -> None:
    for epoch in range(2):
        with _opened(make, SIZES) as whole:
            whole.set_epoch(epoch)
            expected = list(whole)
        for stop in range(len(expected) + 1):
            with (
                _opened(make, SIZES) as before,
                _opened(make, SIZES) as after,
            ):
                before.set_epoch(epoch)
                taken = take(before, stop)
                after.load_state_dict(json.loads(json.dumps(before.state_dict())))
                assert taken + list(after) == expected


@each_stage
def test_leaving_a_loop_and_starting_another_continues(make: Make) -> None:
    with _opened(make, SIZES) as stage:
        assert sorted(flat(take(stage, 1)) + flat(take(stage, 1)) + flat(stage)) == given_by(make, range(15))
        assert list(stage) == []


@each_stage
def test_the_next_epoch_begins_at_its_start(make: Make) -> None:
    with _opened(make, SIZES) as stage:
        take(stage, 1)
        stage.set_epoch(1)
        assert sorted(flat(stage)) == given_by(make, range(1000, 1015))


@each_stage
@settings(max_examples=25)
@given(sizes=st.lists(st.integers(0, 30), max_size=12), epoch=st.integers(0, 3), data=st.data())
def test_every_row_once_and_resume_equals_no_interruption(
    make: Make, sizes: list[int], epoch: int, data: st.DataObject
) -> None:
    with _opened(make, sizes) as stage:
        stage.set_epoch(epoch)
        expected = list(stage)
        stage.set_epoch(epoch)
        taken = take(stage, data.draw(st.integers(0, len(expected))))
        saved = stage.state_dict()
    with _opened(make, sizes) as resumed:
        resumed.load_state_dict(saved)
        assert taken + list(resumed) == expected

    assert sorted(row_ids(expected)) == given_by(make, range(sum(sizes)))


@each_stage
def test_a_place_holds_no_rows(make: Make) -> None:
    """What is saved is small, however much waits in buffers."""
    with _opened(make, [1000] * 3) as stage:
        take(stage, 1)
        assert len(json.dumps(stage.state_dict())) < 300


@each_stage
@pytest.mark.parametrize("state", [None, {}, {"epoch": 1}, "place"])
def test_what_is_no_place_is_refused(make: Make, state: object) -> None:
    with _opened(make, SIZES) as stage, pytest.raises(CheckpointError, match="is no position in the data"):
        stage.load_state_dict(state)
