"""Rewriting as a command: progress for people, and a stop that leaves nothing behind."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from penstock.prep.rewrite import CountRows, RewriteOptions, RewriteSummary, check_output, rewrite
from penstock.readers.files import DataFile
from penstock.readers.scan import ReadRequest, scan_files
from penstock.readers.sections import ReadingSection
from penstock.runtime.interrupts import Stopped, stop_on_signal
from penstock.runtime.progress import ProgressLogger


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

        @contextmanager
        def stage(name: str, num_rows: int) -> Iterator[CountRows]:
            with ProgressLogger(name, "rows", num_rows, plain=plain) as progress:

                def count(rows: int) -> None:
                    progress.advance(rows)
                    if stop:
                        raise Stopped("nothing was written", stop)

                yield count

        return rewrite(
            scan_files(reading, files, ReadRequest(columns)), out, options, overwrite=overwrite, stage=stage
        )
