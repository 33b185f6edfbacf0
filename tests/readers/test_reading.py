"""Blocks decoded at once on several threads, and row groups on all cores where somebody waits for them."""

import threading
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import DataError
from penstock.config.sizes import MIB
from penstock.data.prefetch import ReadAhead
from penstock.readers import scan
from penstock.readers.parquet import OpenParquet
from penstock.readers.scan import BlockStream, ScannedFiles
from penstock.runtime.budget import Share
from tests.readers.samples import CSV_WITH_HEADER, flat, open_path, scan_path, take, write_csv


@pytest.fixture
def scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScannedFiles:
    """Twelve files of one chunk each, and a machine with four cores."""
    monkeypatch.setattr(scan, "max_decode_threads", lambda: 4)
    return scan_path(write_csv(tmp_path, [50] * 12), CSV_WITH_HEADER)


def decoding_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("penstock-decode")]


@pytest.mark.parametrize(("times", "num_threads"), [(1, 0), (3, 3), (99, 4)])
def test_as_many_threads_as_the_share_holds(scanned, monkeypatch, times, num_threads):
    counts: list[int] = []
    split = Share.split
    # A pool starts a thread only where none is idle: how many there may be is told by the parts of the share.
    monkeypatch.setattr(Share, "split", lambda share, count: counts.append(count) or split(share, count))
    batches = iter(BlockStream(scanned, Share("r", times * scanned.sizes.decoder_bytes)))
    next(batches)

    assert counts == ([num_threads] if num_threads else [])
    assert len(decoding_threads()) <= num_threads


@pytest.mark.parametrize("seed", [None, 3])
def test_rows_come_in_the_order_of_one_thread_and_go_on_after_a_stop(scanned, seed):
    share = Share("r", 4 * scanned.sizes.decoder_bytes)
    one, four = (
        BlockStream(scanned, Share("r", scanned.sizes.decoder_bytes), seed),
        BlockStream(scanned, share, seed),
    )
    abandoned = iter(four)
    next(abandoned)
    four.set_epoch(0)

    assert flat(take(four, 3)) + flat(four) == flat(one)
    assert share.held_bytes == 0
    assert 0 < share.peak_bytes <= share.limit_bytes
    assert decoding_threads() == []


def test_an_error_comes_in_its_turn(tmp_path: Path, scanned: ScannedFiles) -> None:
    (tmp_path / "part-005.csv").write_text("number,text\n" + "x,y\n" * 50)
    reader = BlockStream(scanned, Share("r", 4 * scanned.sizes.decoder_bytes))

    assert flat(take(reader, 5)) == list(range(250))
    with pytest.raises(DataError, match=r"part-005\.csv"):
        list(reader)
    assert decoding_threads() == []


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether threads were used, for each row group that is decoded."""
    seen: list[bool] = []
    read = OpenParquet.read_row_group

    def noted(self, *args, use_threads, **options):
        seen.append(use_threads)
        return read(self, *args, use_threads=use_threads, **options)

    monkeypatch.setattr(OpenParquet, "read_row_group", noted)
    return seen


@pytest.fixture
def row_groups(tmp_path: Path) -> BlockStream:
    pq.write_table(pa.table({"x": range(40)}), tmp_path / "rows.parquet", row_group_size=10)
    return open_path(tmp_path / "rows.parquet")


@pytest.mark.parametrize(("num_waiting", "on_threads"), [(None, False), (0, True), (1, True), (2, False)])
def test_all_cores_decode_where_few_batches_wait(row_groups, decoded, num_waiting, on_threads):
    row_groups.num_waiting = None if num_waiting is None else lambda: num_waiting

    assert sum(batch.num_rows for batch in row_groups) == 40
    assert decoded == [on_threads] * 4


def test_whoever_reads_ahead_reports_what_waits(row_groups: BlockStream, decoded: list[bool]) -> None:
    ahead = ReadAhead(row_groups, Share("read ahead", MIB))

    assert sum(batch.num_rows for batch in ahead) == 40
    assert decoded[0] is True
