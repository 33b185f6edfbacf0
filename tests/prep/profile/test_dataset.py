"""The profile of files: all rows, or pieces of them, inside a share."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.sizes import MIB
from penstock.prep.profile import pieces
from penstock.prep.profile.dataset import profile_pieces, profile_rows
from penstock.prep.profile.footers import with_footers
from penstock.prep.profile.pieces import BlockPieces
from penstock.readers.files import list_files
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Wanted, survey
from penstock.runtime.budget import Share

NUM_ROWS = 50_000


@pytest.fixture
def surveyed(tmp_path):
    numbers = range(NUM_ROWS)
    table = pa.table(
        {
            "number": pa.array(numbers, pa.int64()),
            "gap": pa.array([None if number == 49_000 else number % 10 for number in numbers], pa.int32()),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000)
    return survey(ReadingSection(), list_files(str(tmp_path)), Wanted())


@pytest.fixture
def share():
    return Share("reading", 8 * MIB)


def test_all_rows(surveyed, share):
    seen = []
    profile = profile_rows(surveyed, share, full=True, on_rows=seen.append)

    number, gap = profile.columns
    assert profile.is_whole
    assert sum(seen) == NUM_ROWS
    assert (number.least, number.most, number.order.is_ascending) == (0, NUM_ROWS - 1, True)
    assert (gap.num_nulls, gap.distinct) == (1, 10)
    assert share.held_bytes == 0


def test_pieces_from_all_over_the_data(surveyed, share, monkeypatch):
    monkeypatch.setattr(pieces, "WHOLE_BYTES", 1)
    monkeypatch.setattr(pieces, "_MOST_PIECE_ROWS", 100)

    profile = profile_rows(surveyed, share)

    assert (profile.num_seen, profile.num_places, profile.is_whole) == (3200, 32, False)
    assert (profile.columns[0].least, profile.columns[0].most) == (0, NUM_ROWS - 1)
    assert profile.columns[0].order.is_ascending


def test_footers_know_nulls_and_extremes_of_all_rows(surveyed, share, monkeypatch):
    monkeypatch.setattr(pieces, "WHOLE_BYTES", 1)
    monkeypatch.setattr(pieces, "_MOST_PASSED_BYTES", 0)
    monkeypatch.setattr(pieces, "_MOST_PIECE_ROWS", 100)
    profile = profile_rows(surveyed, share)
    assert profile.columns[0].most == 40_099

    number, gap = with_footers(profile, surveyed.files).columns

    assert (number.least, number.most) == (0, NUM_ROWS - 1)
    assert (gap.num_nulls, gap.num_rows) == (1, NUM_ROWS)


def test_a_look_at_some_columns_ends_where_it_is_enough(surveyed, share):
    chosen = [BlockPieces(4, ((0, 10),)), BlockPieces(1, ((5, 8),))]

    whole = profile_pieces(surveyed, share, chosen, columns=["gap"])
    begun = profile_pieces(surveyed, share, chosen, enough=lambda: True)

    assert [column.name for column in whole.columns] == ["gap"]
    assert whole.num_seen == 13
    assert (begun.num_seen, begun.columns[0].least) == (10, 40_000)
    assert share.held_bytes == 0
