"""What is known of columns and of data sets, and which rows are looked at for it."""

from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.sizes import KIB, MIB
from penstock.prep import profile as profiling
from penstock.prep.profile import (
    STANDARD_ERROR,
    BlockPieces,
    ColumnProfile,
    RowOrder,
    choose_few_pieces,
    choose_pieces,
    profile_pieces,
    with_footers,
)
from penstock.readers.files import list_files
from penstock.readers.order import Blocks
from penstock.readers.scan import ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share

NUM_ROWS = 50_000


def facts(*blocks, type=None):
    arrays = [pa.array(block, type) for block in blocks]
    profile = ColumnProfile(pa.field("column", arrays[0].type))
    for array in arrays:
        profile.add(array)
    return profile.facts()


def test_integers():
    found = facts([3, None, 1], [2, 3])

    assert (found.num_rows, found.num_nulls, found.distinct, found.least, found.most) == (5, 1, 3, 1, 3)
    assert (found.mean, found.mean_length) == (2.25, None)


def test_floats_with_nan():
    found = facts([1.5, float("nan"), None, 0.5])

    assert (found.num_nan, found.num_nulls, found.mean, found.least, found.most) == (1, 1, 1.0, 0.5, 1.5)


def test_only_nan():
    found = facts([float("nan")])

    assert (found.least, found.most, found.mean) == (None, None, None)


def test_texts():
    found = facts(["pear", "fig", None], ["apple"])

    assert (found.least, found.most, found.mean_length, found.is_number_text) == ("apple", "pear", 4.0, False)


@pytest.mark.parametrize("texts", [["1", "-2", "3.5"], ["1e3"], [".5", "+7"]])
def test_texts_that_are_numbers(texts):
    assert facts(texts).is_number_text


@pytest.mark.parametrize("texts", [["02134"], ["1", ""], ["1", "x"], [None], ["1;2"], ["nan"]])
def test_texts_that_must_stay_texts(texts):
    assert not facts(texts, type=pa.string()).is_number_text


def test_of_lists_the_items_count():
    found = facts([[1, 2], None, []], [[7, None]])

    assert (found.num_nulls, found.distinct, found.least, found.most) == (1, 3, 1, 7)
    assert found.mean_length == pytest.approx(4 / 3)
    assert found.length_range == (0, 2)


def test_of_lists_of_lists_the_innermost_items_count():
    assert facts([[[1], [2, 3]], [[]]]).distinct == 3


def test_of_maps_the_keys_count():
    found = facts([[("a", 1), ("b", 2)], [], None], type=pa.map_(pa.string(), pa.int64()))

    assert (found.distinct, found.least, found.most, found.mean_length) == (2, "a", "b", 1.0)


def test_a_slice_of_lists_and_maps_knows_nothing_of_the_rest():
    column = pa.array([[("a", 1)], [("b", 2)], [("c", 3)]], pa.map_(pa.string(), pa.int64()))
    profile = ColumnProfile(pa.field("column", column.type))
    profile.add(column.slice(1, 1))

    assert (profile.facts().least, profile.facts().most) == ("b", "b")


def test_moments():
    first, second = datetime(2024, 1, 1), datetime(2024, 1, 2)
    found = facts([first, second])

    assert (found.least, found.most, found.order.is_ascending) == (first, second, True)


def test_dictionaries_are_their_values():
    profile = ColumnProfile(pa.field("column", pa.dictionary(pa.int32(), pa.string())))
    profile.add(pa.array(["a", "b", None, "a"]).dictionary_encode())
    found = profile.facts()

    assert (found.distinct, found.num_nulls, found.top) == (2, 1, ("a", pytest.approx(2 / 3)))


def test_types_without_an_order_are_counted():
    found = facts([{"a": 1}, {"a": 2}, None])

    assert (found.distinct, found.num_nulls, found.least) == (2, 1, None)


def test_booleans():
    found = facts([True, False, True, None])

    assert (found.least, found.most, found.mean) == (False, True, pytest.approx(2 / 3))


def test_no_rows():
    found = facts([], type=pa.int64())

    assert (found.num_rows, found.distinct, found.least, found.top) == (0, 0, None, None)


@pytest.mark.parametrize("num_values", [5_000, 1_000_000])
def test_many_values_are_counted_within_three_standard_errors(num_values):
    values = np.arange(num_values)
    found = facts(*np.array_split(np.concatenate([values, values]), 10))

    assert not found.distinct_is_exact
    assert found.distinct == pytest.approx(num_values, rel=3 * STANDARD_ERROR)


def test_a_frequent_value_is_found_among_many_others():
    blocks = [[0] * 600 + list(range(start, start + 400)) for start in range(1000, 100_000, 400)]

    assert facts(*blocks).top == (0, 0.6)
    assert facts(["a", "b", "a"], ["a", "c", "d", "a"]).top == ("a", pytest.approx(4 / 7))
    assert facts(range(1000)).top is None


def order_of(*blocks):
    order = RowOrder()
    for block in blocks:
        order.add(np.array(block, np.int64))
    return order


def test_sorted_over_several_blocks():
    assert order_of([1, 2, 2], [], [3], [9, 10]).is_ascending


def test_a_step_back_between_blocks_is_seen():
    order = order_of([1, 2], [1, 2])

    assert not order.is_ascending
    assert (order.rises, order.falls, order.ties) == (2, 1, 0)


def test_a_constant_is_not_sorted_by():
    assert not order_of([1, 1, 1]).is_ascending


def test_rates():
    order = order_of([0, 0, 1, 0, 1])

    assert order.change_rate == 0.75
    assert order.fall_rate == pytest.approx(1 / 3)


@pytest.fixture
def scanned(tmp_path):
    numbers = range(NUM_ROWS)
    table = pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "gap": pa.array([None if number == 49_000 else number % 10 for number in numbers], pa.int32()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000)
    return scan_files(ReadingSection(), list_files(str(tmp_path)), ReadRequest())


@pytest.fixture
def share():
    return Share("reading", 8 * MIB)


def pieces_of(scanned, full=False):
    return choose_pieces(scanned.blocks, scanned.row_bytes, full=full)


def test_all_rows(scanned, share):
    seen = []
    profile = profile_pieces(scanned, share, pieces_of(scanned, full=True), on_rows=seen.append)

    number, gap = profile.columns
    assert profile.is_whole
    assert sum(seen) == NUM_ROWS
    assert (number.least, number.most, number.order.is_ascending) == (0, NUM_ROWS - 1, True)
    assert (gap.num_nulls, gap.distinct) == (1, 10)
    assert share.held_bytes == 0


def test_pieces_from_all_over_the_data(scanned, share, monkeypatch):
    monkeypatch.setattr(profiling, "WHOLE_BYTES", 1)
    monkeypatch.setattr(profiling, "_MAX_PIECE_ROWS", 100)

    profile = profile_pieces(scanned, share, pieces_of(scanned))

    assert (profile.num_seen, profile.num_places, profile.is_whole) == (3200, 32, False)
    assert (profile.columns[0].least, profile.columns[0].most) == (0, NUM_ROWS - 1)
    assert profile.columns[0].order.is_ascending


def test_footers_know_nulls_and_extremes_of_all_rows(scanned, share, monkeypatch):
    monkeypatch.setattr(profiling, "WHOLE_BYTES", 1)
    monkeypatch.setattr(profiling, "_MAX_PASSED_BYTES", 0)
    monkeypatch.setattr(profiling, "_MAX_PIECE_ROWS", 100)
    profile = profile_pieces(scanned, share, pieces_of(scanned))
    assert profile.columns[0].most == 40_099

    number, gap = with_footers(profile, scanned.files).columns

    assert (number.least, number.most) == (0, NUM_ROWS - 1)
    assert (gap.num_nulls, gap.num_rows) == (1, NUM_ROWS)


def test_a_look_at_some_columns_ends_where_it_is_enough(scanned, share):
    chosen = [BlockPieces(4, ((0, 10),)), BlockPieces(1, ((5, 8),))]

    whole = profile_pieces(scanned, share, chosen, columns=["gap"])
    begun = profile_pieces(scanned, share, chosen, enough=lambda: True)

    assert [column.name for column in whole.columns] == ["gap"]
    assert whole.num_seen == 13
    assert (begun.num_seen, begun.columns[0].least) == (10, 40_000)
    assert share.held_bytes == 0


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
    assert [piece.num_rows for piece in choose_few_pieces(blocks_of(10, 20), 100, max_rows=30)] == [10, 20]


def test_a_short_look_takes_no_more_rows_than_it_may_from_all_over_the_data():
    pieces = choose_few_pieces(blocks_of(*[1_000] * 100), row_bytes=KIB, max_rows=320)

    assert sum(piece.num_rows for piece in pieces) == 320
    assert len(pieces) == 32
    first_half = {piece.block for piece in pieces[:4]}
    assert min(first_half) < 10
    assert max(first_half) > 60


def test_a_short_look_begins_at_the_starts_of_large_blocks():
    pieces = choose_few_pieces(blocks_of(10**6, 10**6), row_bytes=KIB, max_rows=1000)

    assert pieces == [BlockPieces(0, ((0, 500),)), BlockPieces(1, ((0, 500),))]


def test_a_short_look_at_large_rows_takes_few():
    assert sum(piece.num_rows for piece in choose_few_pieces(blocks_of(1000), MIB, max_rows=1000)) <= 16


def test_a_short_look_at_nothing():
    assert choose_few_pieces(blocks_of(), row_bytes=1, max_rows=10) == []
