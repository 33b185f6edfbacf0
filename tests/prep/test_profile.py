"""What is known of columns and of data sets, and which rows are looked at for it."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.sizes import KIB, MIB
from penstock.prep import profile as profiling
from penstock.prep.profile import (
    STANDARD_ERROR,
    BlockPieces,
    ColumnFacts,
    add_footers,
    choose_few_pieces,
    choose_pieces,
    profile_pieces,
)
from penstock.readers.files import list_files
from penstock.readers.order import Blocks
from penstock.readers.scan import ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share

NUM_ROWS = 50_000


def facts(*blocks, type=None):
    arrays = [pa.array(block, type) for block in blocks]
    found = ColumnFacts("column", arrays[0].type)
    for array in arrays:
        found.add(array)
    return found


MAP = pa.map_(pa.string(), pa.int64())
KNOWN = {
    "integers": (facts([3, None, 1], [2, 3]), {"distinct": 3, "range": (1, 3), "mean": 2.25, "nulls": 1}),
    "floats": (facts([1.5, float("nan"), None]), {"range": (1.5, 1.5), "mean": 1.5, "nulls": 1, "nan": 1}),
    "only nan": (facts([float("nan")]), {"range": (None, None), "mean": None, "nan": 1}),
    "strings": (facts(["pear", "fig", None], ["apple"]), {"range": ("apple", "pear"), "mean_length": 4.0}),
    "booleans": (facts([True, False, None]), {"range": (False, True), "mean": 0.5, "nulls": 1}),
    "lists": (facts([[1, 2], None, []], [[7, None]]), {"distinct": 3, "range": (1, 7), "lengths": (0, 2)}),
    "lists of lists": (facts([[[1], [2, 3]], [[]]]), {"distinct": 3}),
    "maps": (
        facts([[("a", 1), ("b", 2)], [], None], type=MAP),
        {"range": ("a", "b"), "mean_length": 1.0},
    ),
    "a slice": (facts(pa.array([[("a", 1)], [("b", 2)]], MAP).slice(1, 1)), {"range": ("b", "b")}),
    "structs": (facts([{"a": 1}, {"a": 2}, None]), {"distinct": 2, "range": (None, None), "nulls": 1}),
    "dictionaries": (
        facts(pa.array(["a", "b", "a"]).dictionary_encode()),
        {"distinct": 2, "top": ("a", 2 / 3)},
    ),
    "nothing": (facts([], type=pa.int64()), {"distinct": 0, "range": (None, None), "top": None}),
}


@pytest.mark.parametrize(("found", "expected"), KNOWN.values(), ids=KNOWN)
def test_what_values_say(found, expected):
    known = {
        "distinct": found.distinct,
        "range": (found.min_value, found.max_value),
        "mean": found.mean,
        "nulls": found.num_nulls,
        "nan": found.num_nan,
        "mean_length": found.mean_length,
        "lengths": found.length_range,
        "top": found.top,
    }
    assert {name: known[name] for name in expected} == expected


def test_strings_that_are_numbers():
    assert all(facts(strings).is_number_text for strings in (["1", "-2", "3.5"], ["1e3"], [".5", "+7"]))
    for strings in (["02134"], ["1", ""], ["1", "x"], [None], ["1;2"], ["nan"]):
        assert not facts(strings, type=pa.string()).is_number_text, strings


@pytest.mark.parametrize("num_values", [5_000, 1_000_000])
def test_many_values_are_counted_within_three_standard_errors(num_values):
    values = np.arange(num_values)
    found = facts(*np.array_split(np.concatenate([values, values]), 10))

    assert not found.distinct_is_exact
    assert found.distinct == pytest.approx(num_values, rel=3 * STANDARD_ERROR)


def test_a_frequent_value_is_found_among_many_others():
    blocks = [[0] * 600 + list(range(start, start + 400)) for start in range(1000, 100_000, 400)]

    assert facts(*blocks).top == (0, 0.6)
    assert facts(range(1000)).top is None


def test_the_order_of_rows_over_several_blocks():
    def order(*blocks):
        found = facts(*blocks)
        return found.rises, found.falls, found.ties

    assert order([1, 2, 2], [3], [9, 10]) == (4, 0, 1)
    assert order([1, 1, 1]) == (0, 0, 2)
    assert order([1, 2], [1, 2]) == (2, 1, 0)
    assert order([[1, 2], [3]]) == (0, 0, 0)


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
    assert (number.min_value, number.max_value, number.falls) == (0, NUM_ROWS - 1, 0)
    assert (gap.num_nulls, gap.distinct) == (1, 10)
    assert share.held_bytes == 0


def test_footers_know_nulls_and_extremes_of_all_rows(scanned, share, monkeypatch):
    monkeypatch.setattr(profiling, "WHOLE_BYTES", 1)
    monkeypatch.setattr(profiling, "_MAX_PASSED_BYTES", 0)
    monkeypatch.setattr(profiling, "_MAX_PIECE_ROWS", 100)
    profile = profile_pieces(scanned, share, pieces_of(scanned))
    assert profile.columns[0].max_value == 40_099

    add_footers(profile, scanned.files)
    number, gap = profile.columns

    assert (number.min_value, number.max_value) == (0, NUM_ROWS - 1)
    assert (gap.num_nulls, gap.num_rows) == (1, NUM_ROWS)


def test_a_look_at_some_columns_ends_where_it_is_enough(scanned, share):
    chosen = [BlockPieces(4, ((0, 10),)), BlockPieces(1, ((5, 8),))]

    whole = profile_pieces(scanned, share, chosen, columns=["gap"])
    begun = profile_pieces(scanned, share, chosen, enough=lambda: True)

    assert [column.name for column in whole.columns] == ["gap"]
    assert whole.num_seen == 13
    assert (begun.num_seen, begun.columns[0].min_value) == (10, 40_000)
    assert share.held_bytes == 0


def blocks_of(*num_rows):
    return Blocks.of((index, 0, rows) for index, rows in enumerate(num_rows))


def test_which_pieces_are_read():
    small = choose_pieces(blocks_of(10, 20), row_bytes=100)
    assert small == [BlockPieces(0, ((0, 10),)), BlockPieces(1, ((0, 20),))]

    large = choose_pieces(blocks_of(*[100_000] * 4), row_bytes=KIB)
    assert sum(len(piece.intervals) for piece in large) == 32
    assert large[0].intervals[0][0] == 0
    assert (large[-1].block, large[-1].intervals[-1][1]) == (3, 100_000)
    assert sum(piece.num_rows for piece in large) * KIB <= 64 * MIB

    # Where the way into blocks is long, pieces begin at their starts.
    starts = choose_pieces(blocks_of(*[2_000_000] * 40), row_bytes=KIB)
    assert (len(starts), {piece.intervals for piece in starts}) == (32, {((0, 2048),)})

    full = choose_pieces(blocks_of(10**7), row_bytes=MIB, full=True)
    assert full == [BlockPieces(0, ((0, 10**7),))]
    assert choose_pieces(blocks_of(), row_bytes=1) == []


def test_which_few_pieces_are_read():
    all_rows = choose_few_pieces(blocks_of(10, 20), 100, max_rows=30)
    assert [piece.num_rows for piece in all_rows] == [10, 20]

    few = choose_few_pieces(blocks_of(*[1_000] * 100), row_bytes=KIB, max_rows=320)
    assert (len(few), sum(piece.num_rows for piece in few)) == (32, 320)
    first = {piece.block for piece in few[:4]}
    assert min(first) < 10 < 60 < max(first), "from all over the data, also for those who stop early"

    starts = choose_few_pieces(blocks_of(10**6, 10**6), row_bytes=KIB, max_rows=1000)
    assert starts == [BlockPieces(0, ((0, 500),)), BlockPieces(1, ((0, 500),))]
    large_rows = choose_few_pieces(blocks_of(1000), MIB, max_rows=1000)
    assert sum(piece.num_rows for piece in large_rows) <= 16
    assert choose_few_pieces(blocks_of(), row_bytes=1, max_rows=10) == []
