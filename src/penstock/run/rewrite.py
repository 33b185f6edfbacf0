"""Rewriting as a command: files by path, progress for people, and a stop that leaves nothing behind."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from penstock.prep.rewrite import CountRows, RewriteOptions, RewriteSummary, Watcher, check_output, rewrite
from penstock.readers.files import DataFile
from penstock.readers.scan import ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.interrupts import Stopped, StopRequest, stop_on_signal
from penstock.runtime.progress import ProgressLogger

log = logging.getLogger(__name__)


def rewrite_files(
    files: Sequence[DataFile],
    out: Path,
    options: RewriteOptions,
    reading: ReadingSection,
    *,
    columns: Sequence[str] | None = None,
    overwrite: bool = False,
    plain: bool = False,
) -> RewriteSummary:
    """Write the rows of files of any format to Parquet files in the folder `out`."""
    check_output(out, [file.path for file in files], overwrite)
    with stop_on_signal() as stop:
        source = scan_files(reading, files, ReadRequest(columns))
        return rewrite(source, out, options, overwrite=overwrite, watcher=_Shown(stop, plain))


class _Shown(Watcher):
    """Shows the work on the terminal, and ends it when asked."""

    def __init__(self, stop: StopRequest, plain: bool) -> None:
        self._stop, self._plain = stop, plain

    def note(self, line: str) -> None:
        log.info(line)

    def stage(self, name: str, num_rows: int) -> AbstractContextManager[CountRows]:
        return self._shown(name, num_rows)

    @contextmanager
    def _shown(self, name: str, num_rows: int) -> Iterator[CountRows]:
        with ProgressLogger(name, "rows", num_rows, plain=self._plain) as progress:

            def count(rows: int) -> None:
                progress.advance(rows)
                if self._stop:
                    raise Stopped("nothing was written", self._stop)

            yield count
