"""Going on with another number of shards: which rows are done, from the positions of all shards together."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from penstock.config.errors import CheckpointError
from penstock.data.cut import split_rows
from penstock.data.shuffle import Bucketing, window_order
from penstock.readers.order import Blocks, ConsumedRows, ConsumedRowsBuilder, EpochOrder, Int64Array, Shard
from penstock.readers.scan import BlockStream, ScannedFiles
from penstock.readers.stream import StreamPosition
from penstock.runtime.budget import Share
from penstock.runtime.world import State

ReadLengths = Callable[[State, StreamPosition, int], Int64Array]
"""From the order of a saved state, a position in it before the shuffle, and a number of rows: their lengths."""


def state_for(
    states: Sequence[State], blocks: Blocks, shard: Shard, read_lengths: ReadLengths | None = None
) -> State:
    """The position of one shard, from the positions that all shards of a run saved at one moment.

    With as many shards as before, each goes on exactly where it was. With another number, what is left of the epoch
    is divided again: every row that is not done goes to one shard. `read_lengths` is needed where rows are brought
    together by length: which rows of an open window were drawn follows from their lengths.
    """
    by_shard = _by_shard(states)
    if shard.count == len(states):
        return by_shard[shard.index]
    first = states[0]
    return {
        "epoch": first["epoch"],
        "row": 0,
        "done": _done_rows(states, blocks, read_lengths).state,
        "order": first["order"] | {"shard": [shard.index, shard.count]},
    }


def _by_shard(states: Sequence[State]) -> dict[int, State]:
    given: Sequence[Any] = states
    if not given or not all(
        isinstance(state, Mapping) and isinstance(state.get("order"), Mapping) and "shard" in state["order"]
        for state in given
    ):
        raise CheckpointError("what was given is no position: it must be what state_dict gave on each shard")
    shards = [Shard(*state["order"]["shard"]) for state in states]
    count = shards[0].count
    if any(shard.count != count for shard in shards):
        all_found = ", ".join(f"{shard.index} of {shard.count}" for shard in shards)
        raise CheckpointError(
            f"the positions are of runs on different numbers of shards: {all_found}; load those of one checkpoint"
        )
    times = Counter(shard.index for shard in shards)
    problems = []
    for what, wrong in (
        ("given more than once", [str(index) for index in range(count) if times[index] > 1]),
        ("missing", [str(index) for index in range(count) if not times[index]]),
    ):
        if wrong:
            problems.append(f"{what}: shard{'s' * (len(wrong) > 1)} {', '.join(wrong)} of {count}")
    if problems:
        raise CheckpointError(
            f"the positions of all shards are needed together, each once; {'; '.join(problems)}"
        )
    return {shard.index: state for shard, state in zip(shards, states, strict=True)}


def _done_rows(states: Sequence[State], blocks: Blocks, read_lengths: ReadLengths | None) -> ConsumedRows:
    """The rows of the epoch that these shards have given out, and those that were done before them."""
    first = states[0]
    if any(state["epoch"] != first["epoch"] or state["done"] != first["done"] for state in states):
        raise CheckpointError("the positions are of different moments; load those of one checkpoint")
    before = None if first["done"] is None else ConsumedRows.of_state(first["done"])
    collected = ConsumedRowsBuilder(blocks, before)
    for state in states:
        order, row = state["order"], state["row"]
        sequence = EpochOrder(blocks, order["seed"], state["epoch"], Shard(*order["shard"]), before)
        if "shuffle" not in order:
            sequence.add_first_rows(row, collected)
            continue
        window_rows = order["shuffle"]["num_rows"]
        window, num_drawn = divmod(row, window_rows)
        start = window * window_rows
        sequence.add_first_rows(start, collected)
        if not num_drawn:
            continue
        num_rows, lengths = min(window_rows, sequence.num_rows - start), None
        position = StreamPosition(state["epoch"], start, before)
        if "bucket_by" in order["shuffle"]:
            assert read_lengths is not None, "which rows are done follows from their lengths"
            lengths = read_lengths(order, position, num_rows)
        drawn = window_order(order, position, window, num_rows, lengths)[:num_drawn]
        sequence.add_rows(start + drawn, collected)
    return collected.result()


def read_lengths(scanned: ScannedFiles, share: Share, bucketing: Bucketing) -> ReadLengths:
    """Reads the lengths of a window again; a scan of nothing but the column is enough."""

    def read(order: State, position: StreamPosition, num_rows: int) -> Int64Array:
        stream = BlockStream(scanned, share, order["seed"], Shard(*order["shard"]))
        stream.position = position
        lengths = []
        with closing(iter(stream)) as batches:  # type: ignore[type-var]
            for piece, is_last in split_rows(batches, num_rows):
                lengths.append(bucketing.length.of(piece))
                if is_last:
                    break
        return np.concatenate(lengths)

    return read
