"""Which rows are looked at."""

from penstock.config.sizes import KIB, MIB
from penstock.prep.profile.pieces import BlockPieces, choose_few_pieces, choose_pieces
from penstock.readers.blocks import Blocks


def blocks_of(*num_rows):
    return Blocks.of((index, 0, rows) for index, rows in enumerate(num_rows))


def test_small_data_is_looked_at_completely():
    pieces = choose_pieces(blocks_of(10, 20), row_bytes=100)

    assert [(piece.block, piece.intervals) for piece in pieces] == [(0, ((0, 10),)), (1, ((0, 20),))]


def test_large_data_is_looked_at_in_32_places_from_its_first_row_to_its_last():
    blocks = blocks_of(*[100_000] * 4)

    pieces = choose_pieces(blocks, row_bytes=KIB)

    assert sum(len(piece.intervals) for piece in pieces) == 32
    assert pieces[0].intervals[0][0] == 0
    assert (pieces[-1].block, pieces[-1].intervals[-1][1]) == (3, 100_000)
    assert sum(piece.num_rows for piece in pieces) * KIB <= 64 * MIB


def test_where_the_way_into_blocks_is_long_their_beginnings_are_looked_at():
    pieces = choose_pieces(blocks_of(*[2_000_000] * 40), row_bytes=KIB)

    assert len(pieces) == 32
    assert {piece.intervals for piece in pieces} == {((0, 2048),)}


def test_full_means_all():
    pieces = choose_pieces(blocks_of(10**7), row_bytes=MIB, full=True)

    assert [piece.intervals for piece in pieces] == [((0, 10**7),)]


def test_no_rows_at_all():
    assert choose_pieces(blocks_of(), row_bytes=1) == []


def test_a_short_look_takes_all_of_few_rows():
    assert [piece.num_rows for piece in choose_few_pieces(blocks_of(10, 20), 100, most_rows=30)] == [10, 20]


def test_a_short_look_takes_no_more_rows_than_it_may_from_all_over_the_data():
    pieces = choose_few_pieces(blocks_of(*[1_000] * 100), row_bytes=KIB, most_rows=320)

    assert sum(piece.num_rows for piece in pieces) == 320
    assert len(pieces) == 32
    first_half = {piece.block for piece in pieces[:4]}
    assert min(first_half) < 10
    assert max(first_half) > 60


def test_a_short_look_begins_at_the_starts_of_large_blocks():
    pieces = choose_few_pieces(blocks_of(10**6, 10**6), row_bytes=KIB, most_rows=1000)

    assert pieces == [BlockPieces(0, ((0, 500),)), BlockPieces(1, ((0, 500),))]


def test_a_short_look_at_large_rows_takes_few():
    assert sum(piece.num_rows for piece in choose_few_pieces(blocks_of(1000), MIB, most_rows=1000)) <= 16


def test_a_short_look_at_nothing():
    assert choose_few_pieces(blocks_of(), row_bytes=1, most_rows=10) == []
