"""Which rows a shard reads in an epoch, and in which order."""

from itertools import chain

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.readers.order import (
    Blocks,
    ConsumedRows,
    ConsumedRowsBuilder,
    EpochOrder,
    Piece,
    Shard,
)

block_sizes = st.lists(st.integers(0, 9), max_size=12)


def blocks_of(sizes: list[int]) -> Blocks:
    starts = np.cumsum([0, *sizes]).tolist()
    return Blocks.of((0, start, size) for start, size in zip(starts, sizes, strict=False))


def rows_of(order: EpochOrder, blocks: Blocks, row: int = 0) -> list[int]:
    found: list[int] = []
    for piece in order.pieces(row):
        rows = int(blocks.first_row[piece.block]) + np.arange(piece.first_row, piece.end_row)
        found += rows[piece.mask].tolist() if piece.mask is not None else rows.tolist()
    return found


def test_a_shard_begins_and_ends_in_the_middle_of_blocks() -> None:
    order = EpochOrder(blocks_of([4, 4, 4]), None, 0, Shard(1, 2), None)

    assert list(order.pieces()) == [Piece(1, 2, 4), Piece(2, 0, 4)]
    assert list(order.pieces(3)) == [Piece(2, 1, 4)]


@settings(max_examples=100)
@given(
    sizes=block_sizes, count=st.integers(1, 6), seed=st.none() | st.integers(0, 5), epoch=st.integers(0, 3)
)
def test_every_row_is_in_exactly_one_shard(sizes, count, seed, epoch):
    blocks = blocks_of(sizes)
    orders = [EpochOrder(blocks, seed, epoch, Shard(index, count), None) for index in range(count)]
    shards = [rows_of(order, blocks) for order in orders]

    assert sorted(chain.from_iterable(shards)) == list(range(sum(sizes)))
    assert [order.num_rows for order in orders] == [len(rows) for rows in shards]
    assert max(map(len, shards)) - min(map(len, shards)) <= 1


@settings(max_examples=100)
@given(sizes=block_sizes, seed=st.none() | st.integers(0, 5), data=st.data())
def test_what_is_done_is_left_out_and_the_rest_is_cut_anew(sizes, seed, data):
    blocks = blocks_of(sizes)
    num_rows = sum(sizes)
    done_numbers = data.draw(st.sets(st.integers(0, num_rows - 1)) if num_rows else st.just(set()))
    collected = ConsumedRowsBuilder(blocks, None)
    whole = EpochOrder(blocks, None, 0, Shard(), None)
    whole.add_rows(np.array(sorted(done_numbers), np.int64), collected)
    done = ConsumedRows.of_state(collected.result().state)
    count = data.draw(st.integers(1, 4))
    shards = [
        rows_of(EpochOrder(blocks, seed, 1, Shard(index, count), done), blocks) for index in range(count)
    ]

    assert sorted(chain.from_iterable(shards)) == sorted(set(range(num_rows)) - done_numbers)
    assert done.num_rows == len(done_numbers)
    for index, rows in enumerate(shards):
        entered = data.draw(st.integers(0, len(rows)))
        assert (
            rows_of(EpochOrder(blocks, seed, 1, Shard(index, count), done), blocks, entered) == rows[entered:]
        )


def test_what_is_done_is_small_when_it_is_saved() -> None:
    blocks = blocks_of([1000] * 1000)
    collected = ConsumedRowsBuilder(blocks, None)
    EpochOrder(blocks, None, 0, Shard(), None).add_first_rows(500_400, collected)

    state = collected.result().state
    assert state["finished"] == [[0, 500]]
    assert list(state["partly"]) == ["500"]
    assert len(state["partly"]["500"][1]) < 1000 / 8 * 4 / 3 + 4
