"""Mixing rows in windows."""

from penstock.data.shuffle import Shuffle
from penstock.runtime.budget import Share
from tests.data.streams import stream_of_sizes
from tests.readers.samples import flat


def test_rows_mix_inside_a_window_and_stay_inside_it() -> None:
    mixed = flat(Shuffle(stream_of_sizes([30, 30, 40]), 50, seed=1))

    assert sorted(mixed[:50]) == list(range(50))
    assert sorted(mixed[50:]) == list(range(50, 100))
    assert mixed[:50] != list(range(50))


def test_the_order_follows_from_seed_and_epoch_not_from_the_batches_of_the_source() -> None:
    def order(sizes: list[int], seed: int, epoch: int) -> list[int]:
        stage = Shuffle(stream_of_sizes(sizes), 1000, seed)
        stage.set_epoch(epoch)
        return [number % 1000 for number in flat(stage)]

    assert order([100], 1, 0) == order([1, 99], 1, 0)
    assert len({tuple(order([100], seed, epoch)) for seed in (-1, 1, 2) for epoch in (0, 1)}) == 6


def test_a_window_is_leased_while_rows_are_drawn_from_it() -> None:
    share = Share("shuffle", 100_000)
    drawn = iter(Shuffle(stream_of_sizes([10] * 4), 20, seed=1, share=share))
    first = next(drawn)

    assert share.held_bytes > 0
    assert first.num_rows == 20
    assert len(flat(drawn)) == 40 - 20
    assert share.held_bytes == 0


def test_an_iterator_that_is_left_alone_does_not_block_the_next() -> None:
    share = Share("shuffle", 1024 * 1024 * 2)
    stage = Shuffle(stream_of_sizes([10] * 4), 20, seed=1, share=share)
    abandoned = iter(stage)
    next(abandoned)
    stage.set_epoch(0)

    assert sorted(flat(stage)) == list(range(40))
    assert share.held_bytes == 0
    del abandoned


def test_a_consumer_that_lets_go_of_batches_gets_views_of_the_window() -> None:
    def offsets(batch_rows: int) -> list[int]:
        stage = Shuffle(stream_of_sizes([4000]), 4000, seed=1, batch_rows=batch_rows, as_views=True)
        return [batch.column("number").offset for batch in stage]

    assert offsets(1000) == [0, 1000, 2000, 0], "the last is copied: the next window may be filled beside it"
    assert offsets(1500) == [0, 0, 0], "a batch of two windows is copied when it is joined"
