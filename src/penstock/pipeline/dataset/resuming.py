"""Going on from the place of a Dataset, or from those of all its shards with another number of them."""

from collections.abc import Sequence
from typing import Any

from penstock.batching.resharding import state_for
from penstock.config.errors import CheckpointError
from penstock.pipeline.dataset.chain import Chain
from penstock.pipeline.dataset.memory import shuffle_rows
from penstock.pipeline.dataset.places import check_place
from penstock.readers.blocks import Shard
from penstock.runtime.world import State


def place_in(chain: Chain, state: Any) -> State:
    """The place at which this chain goes on, checked against what the chain says."""
    is_of_all_shards = isinstance(state, list | tuple)
    states: list[Any] = list(state) if is_of_all_shards else [state]
    if not states:
        raise CheckpointError("there are no places in this list; load those of all shards")
    for each in states:
        check_place(each)
        _check_same_rows(each, chain)
    return _of_all_shards(states, chain) if is_of_all_shards else states[0]


def _check_same_rows(state: State, chain: Chain) -> None:
    was, present = state["first_rows"], chain.first_rows
    if was != present:
        raise CheckpointError(
            f"the place was saved with {_taking(was)}, and this Dataset is with {_taking(present)}"
        )
    shuffle, own_shuffle = state["rows"]["order"].get("shuffle"), _shuffle_of(chain)
    if shuffle != own_shuffle:
        raise CheckpointError(
            f"the place was saved {_shuffling(shuffle)}, and this Dataset is {_shuffling(own_shuffle)}; "
            "the order of rows is another one"
        )


def _shuffle_of(chain: Chain) -> State | None:
    """What the order of a shuffled stream says."""
    if chain.shuffling is None:
        return None
    return {"num_rows": shuffle_rows(chain, chain.survey()), "seed": chain.shuffling.seed}


def _shuffling(shuffle: State | None) -> str:
    if shuffle is None:
        return "without .shuffle"
    return f"with .shuffle in {shuffle['num_rows']} rows and seed {shuffle['seed']}"


def _of_all_shards(states: Sequence[State], chain: Chain) -> State:
    shard = chain.shard or Shard()
    rows = state_for([state["rows"] for state in states], chain.survey().blocks, shard)
    if shard.count == len(states):
        return next(state for state in states if state["rows"] is rows)
    if chain.take_rows is not None or chain.take_batches is not None or chain.take_in_all is not None:
        raise CheckpointError(
            f"the places are of {len(states)} shards, and this is one of {shard.count}: what .take left of each cannot "
            "be cut anew; go on with as many shards, or call .take before .shard"
        )
    return {**states[0], "given_in_epoch": 0, "given_in_all": 0, "rows": rows}


def _taking(num_rows: int | None) -> str:
    return "all rows" if num_rows is None else f".take({num_rows})"
