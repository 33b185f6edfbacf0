"""Several blocks decoded at once, given out in their order."""

import threading
from pathlib import Path

import pytest

from penstock.config.errors import DataError
from penstock.readers import reading
from penstock.readers.reading import BlockStream
from penstock.readers.scan import ScannedFiles
from penstock.runtime.budget import Share
from tests.readers.samples import CSV_WITH_HEADER, flat, scan_path, take, write_csv


@pytest.fixture
def scanned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScannedFiles:
    """Twelve files of one chunk each, and a machine with four cores."""
    monkeypatch.setattr(reading, "max_decode_threads", lambda: 4)
    return scan_path(write_csv(tmp_path, [50] * 12), CSV_WITH_HEADER)


def decoding_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("penstock-decode")]


@pytest.mark.parametrize(("times", "num_threads"), [(1, 0), (3, 3), (99, 4)])
def test_as_many_threads_as_the_share_holds(
    scanned: ScannedFiles, monkeypatch: pytest.MonkeyPatch, times: int, num_threads: int
) -> None:
    counts: list[int] = []
    split = Share.split
    # A pool starts a thread only where none is idle: how many there may be is told by the parts of the share.
    monkeypatch.setattr(Share, "split", lambda share, count: counts.append(count) or split(share, count))
    batches = iter(BlockStream(scanned, Share("r", times * scanned.decoder_bytes)))
    next(batches)

    assert counts == ([num_threads] if num_threads else [])
    assert len(decoding_threads()) <= num_threads


@pytest.mark.parametrize("seed", [None, 3])
def test_rows_come_in_the_order_of_one_lane(scanned: ScannedFiles, seed: int | None) -> None:
    one = BlockStream(scanned, Share("r", scanned.decoder_bytes), seed)
    four = BlockStream(scanned, Share("r", 4 * scanned.decoder_bytes), seed)

    assert flat(four) == flat(one)
    assert decoding_threads() == []


def test_stops_and_goes_on(scanned: ScannedFiles) -> None:
    share = Share("r", 4 * scanned.decoder_bytes)
    reader = BlockStream(scanned, share)
    first = flat(take(reader, 3))

    assert first + flat(reader) == list(range(600))
    assert share.held_bytes == 0
    assert 0 < share.peak_bytes <= share.limit_bytes
    assert decoding_threads() == []


def test_an_iterator_that_is_left_alone_keeps_no_thread(scanned: ScannedFiles) -> None:
    reader = BlockStream(scanned, Share("r", 4 * scanned.decoder_bytes))
    abandoned = iter(reader)
    next(abandoned)
    reader.set_epoch(0)

    assert flat(reader) == list(range(600))
    assert decoding_threads() == []


def test_an_error_comes_in_its_turn(tmp_path: Path, scanned: ScannedFiles) -> None:
    (tmp_path / "part-005.csv").write_text("number,text\n" + "x,y\n" * 50)
    reader = BlockStream(scanned, Share("r", 4 * scanned.decoder_bytes))

    assert flat(take(reader, 5)) == list(range(250))
    with pytest.raises(DataError, match=r"part-005\.csv"):
        list(reader)
    assert decoding_threads() == []
