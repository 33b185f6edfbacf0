"""Going on with another number of shards: which rows are done, from the places of all shards together."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing

import pyarrow as pa

from penstock.config.errors import CheckpointError
from penstock.data.shuffle import Bucketing, window_order
from penstock.readers.order import Blocks, ConsumedRows, ConsumedRowsBuilder, EpochOrder, Int64Array, Shard
from penstock.readers.reading import BlockStream
from penstock.readers.scan import ScannedFiles
from penstock.readers.stream import StreamPosition
from penstock.runtime.budget import Share
from penstock.runtime.world import State

ReadLengths = Callable[[State, StreamPosition, int], Int64Array]
"""From the order of a saved state, a position in it before the shuffle, and a number of rows: their lengths."""


def state_for(
    states: Sequence[State], blocks: Blocks, shard: Shard, read_lengths: ReadLengths | None = None
) -> State:
    """The position of one shard, from the places that all shards of a run saved at one moment.

    With as many shards as before, each goes on exactly where it was. With another number, what is left of the epoch
    is cut anew: every row that is not done goes to one shard. `read_lengths` is needed where rows are brought
    together by length: which rows of an open window were drawn follows from their lengths.
    """
    by_shard = _by_shard(states)
    if shard.count == len(states):
        return by_shard[shard.index]
    first = states[0]
    return {
        "epoch": first["epoch"],
        "row": 0,
        "done": done_rows(states, blocks, read_lengths).state,
        "order": first["order"] | {"shard": [shard.index, shard.count]},
    }


def _by_shard(states: Sequence[State]) -> dict[int, State]:
    """The positions by their shards: each of one run's, once."""
    if not states or not all(_is_position(state) for state in states):
        raise CheckpointError("what was given is no position: it must be what state_dict gave on each shard")
    shards = [Shard(*state["order"]["shard"]) for state in states]
    counts = sorted({shard.count for shard in shards})
    if len(counts) > 1:
        all_found = ", ".join(f"{shard.index} of {shard.count}" for shard in shards)
        raise CheckpointError(
            f"the positions are of runs on different numbers of shards: {all_found}; load those of one checkpoint"
        )
    times = Counter(shard.index for shard in shards)
    twice = _shards(index for index in sorted(times) if times[index] > 1)
    missing = _shards(index for index in range(counts[0]) if index not in times)
    found = {"given more than once": twice, "missing": missing}
    problems = [f"{what}: {which} of {counts[0]}" for what, which in found.items() if which]
    if problems:
        raise CheckpointError(
            f"the positions of all shards are needed together, each once; {'; '.join(problems)}"
        )
    return {shard.index: state for shard, state in zip(shards, states, strict=True)}


def _is_position(state: object) -> bool:
    return (
        isinstance(state, Mapping) and isinstance(state.get("order"), Mapping) and "shard" in state["order"]
    )


def _shards(indexes: Iterable[int]) -> str:
    """Shards in words: "", "shard 1", "shards 1, 3"."""
    texts = [str(index) for index in indexes]
    return f"shard{'s' if len(texts) > 1 else ''} {', '.join(texts)}" if texts else ""


def done_rows(
    states: Sequence[State], blocks: Blocks, read_lengths: ReadLengths | None = None
) -> ConsumedRows:
    """The rows of the epoch that these shards have given out, and those that were done before them."""
    first = states[0]
    if any(state["epoch"] != first["epoch"] or state["done"] != first["done"] for state in states):
        raise CheckpointError("the positions are of different moments; load those of one checkpoint")
    before = None if first["done"] is None else ConsumedRows.of_state(first["done"])
    collected = ConsumedRowsBuilder(blocks, before)
    for state in states:
        _add_rows_of(state, blocks, before, collected, read_lengths)
    return collected.result()


def _add_rows_of(
    state: State,
    blocks: Blocks,
    before: ConsumedRows | None,
    collected: ConsumedRowsBuilder,
    read_lengths: ReadLengths | None,
) -> None:
    order, row = state["order"], state["row"]
    sequence = EpochOrder(blocks, order["seed"], state["epoch"], Shard(*order["shard"]), before)
    if "shuffle" not in order:
        sequence.add_first_rows(row, collected)
        return
    window_rows = order["shuffle"]["num_rows"]
    window, num_drawn = divmod(row, window_rows)
    start = window * window_rows
    sequence.add_first_rows(start, collected)
    if num_drawn:
        num_rows = min(window_rows, sequence.num_rows - start)
        position = StreamPosition(state["epoch"], start, before)
        lengths = _lengths(order, position, num_rows, read_lengths)
        drawn = window_order(order, position, window, num_rows, lengths)[:num_drawn]
        sequence.add_rows(start + drawn, collected)


def _lengths(
    order: State, position: StreamPosition, num_rows: int, read_lengths: ReadLengths | None
) -> Int64Array | None:
    if "bucket_by" not in order["shuffle"]:
        return None
    if read_lengths is None:
        raise ValueError(
            "rows were brought together by length; read_lengths is needed to tell which are done"
        )
    return read_lengths(order, position, num_rows)


def read_lengths(scanned: ScannedFiles, share: Share, bucketing: Bucketing) -> ReadLengths:
    """Reads the lengths of a window again; a scan of nothing but the column is enough."""

    def read(order: State, position: StreamPosition, num_rows: int) -> Int64Array:
        stream = BlockStream(scanned, share, order["seed"], Shard(*order["shard"]))
        stream.seek(position)
        with closing(iter(stream)) as batches:  # type: ignore[type-var]
            return bucketing.lengths_of(_first_rows(batches, num_rows))

    return read


def _first_rows(batches: Iterable[pa.RecordBatch], num_rows: int) -> Iterable[pa.RecordBatch]:
    for batch in batches:
        yield batch.slice(0, num_rows)
        num_rows -= batch.num_rows
        if num_rows <= 0:
            return
