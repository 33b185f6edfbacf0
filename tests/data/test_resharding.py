"""Going on with another number of shards."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import CheckpointError
from penstock.config.sizes import MIB
from penstock.data.cut import RowCut
from penstock.data.resharding import read_lengths, state_for
from penstock.data.row_cost import SequenceLength
from penstock.data.shuffle import Bucketing, Shuffle
from penstock.readers.order import Shard
from penstock.readers.scan import BlockStream, ScannedFiles
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import Share
from tests.readers.samples import flat, scan_path, take, write_parquet

BY_LENGTH = Bucketing(SequenceLength("list"), 3)


def stream(
    scanned: ScannedFiles,
    shard: Shard,
    window_rows: int | None,
    batch_rows: int,
    bucketing: Bucketing | None = None,
) -> RecordStream:
    """What a rank reads: its shard, shuffled when asked for, in batches."""
    rows: RecordStream = BlockStream(
        scanned, Share("reader", MIB), seed=None if window_rows is None else 3, shard=shard
    )
    if window_rows is not None:
        rows = Shuffle(rows, window_rows, seed=3, bucketing=bucketing)
    return RowCut(rows, batch_rows)


def go_on(
    scanned: ScannedFiles,
    states: list[dict],
    count: int,
    window_rows: int | None,
    bucketing: Bucketing | None = None,
) -> list[RecordStream]:
    """As many streams as there are shards now, each at its position."""
    streams = [stream(scanned, Shard(index, count), window_rows, 3, bucketing) for index in range(count)]
    lengths = None if bucketing is None else read_lengths(scanned, Share("lengths", MIB), bucketing)
    for index, resumed in enumerate(streams):
        resumed.load_state_dict(state_for(states, scanned.blocks, Shard(index, count), lengths))
    return streams


def saved(streams: list[RecordStream]) -> list[dict]:
    return json.loads(json.dumps([each.state_dict() for each in streams]))


@settings(max_examples=60)
@given(
    rows_per_file=st.lists(st.integers(0, 25), min_size=1, max_size=4),
    window_rows=st.none() | st.integers(1, 40),
    counts=st.lists(st.integers(1, 4), min_size=2, max_size=4),
    epoch=st.integers(0, 2),
    bucketing=st.sampled_from([None, BY_LENGTH]),
    data=st.data(),
)
def test_every_row_once_whatever_the_numbers_of_shards_and_the_stops(
    tmp_path_factory: pytest.TempPathFactory,
    rows_per_file: list[int],
    window_rows: int | None,
    counts: list[int],
    epoch: int,
    bucketing: Bucketing | None,
    data: st.DataObject,
) -> None:
    scanned = scan_path(write_parquet(tmp_path_factory.mktemp("data"), rows_per_file))
    streams = [
        stream(scanned, Shard(index, counts[0]), window_rows, 3, bucketing) for index in range(counts[0])
    ]
    for each in streams:
        each.set_epoch(epoch)
    seen: list[int] = []
    for count in counts[1:]:
        for each in streams:
            seen += flat(take(each, data.draw(st.integers(0, 4))))
        streams = go_on(scanned, saved(streams), count, window_rows, bucketing)
    for each in streams:
        seen += flat(each)

    assert sorted(seen) == list(range(sum(rows_per_file)))


@pytest.mark.parametrize(
    ("shards", "problem"),
    [
        (
            [Shard(0, 3), Shard(1, 2)],
            "the positions are of runs on different numbers of shards: 0 of 3, 1 of 2; load those of one checkpoint",
        ),
        (
            [{"order": {}}],
            "what was given is no position: it must be what state_dict gave on each shard",
        ),
    ],
    ids=str,
)
def test_positions_that_do_not_belong_together(tmp_path: Path, shards: list[Any], problem: str) -> None:
    scanned = scan_path(write_parquet(tmp_path, [50]))
    states = [
        stream(scanned, each, 16, 3).state_dict() if isinstance(each, Shard) else each for each in shards
    ]

    with pytest.raises(CheckpointError) as told:
        state_for(states, scanned.blocks, Shard(0, 2))
    assert str(told.value) == problem
