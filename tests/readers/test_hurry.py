"""Row groups are decoded with all cores where somebody waits for them, and with one where enough are there."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.sizes import MIB
from penstock.data.prefetch import ReadAhead
from penstock.readers.files import list_files
from penstock.readers.parquet_files import OpenParquet
from penstock.readers.reading import BlockStream
from penstock.readers.scan import ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.budget import Share


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
def stream(tmp_path: Path) -> BlockStream:
    pq.write_table(pa.table({"x": range(40)}), tmp_path / "rows.parquet", row_group_size=10)
    scanned = scan_files(ReadingSection(), list_files(str(tmp_path / "rows.parquet")), ReadRequest(["x"]))
    return BlockStream(scanned, Share("reader", MIB))


@pytest.mark.parametrize(("num_waiting", "on_threads"), [(0, True), (1, True), (2, False), (9, False)])
def test_what_waits_decides(
    stream: BlockStream, decoded: list[bool], num_waiting: int, on_threads: bool
) -> None:
    stream.num_waiting = lambda: num_waiting
    assert sum(batch.num_rows for batch in stream) == 40
    assert decoded == [on_threads] * 4


def test_where_nobody_reads_ahead_one_core_is_enough(stream: BlockStream, decoded: list[bool]) -> None:
    assert sum(batch.num_rows for batch in stream) == 40
    assert decoded == [False] * 4


def test_whoever_reads_ahead_tells_what_waits(stream: BlockStream, decoded: list[bool]) -> None:
    ahead = ReadAhead(stream, Share("read ahead", MIB))
    assert sum(batch.num_rows for batch in ahead) == 40
    assert decoded[0] is True
    assert stream.num_waiting is None
