"""The work: from a survey of the input to a folder of well-sized files."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.prep.rewrite.estimate import KEY_BYTES, estimate
from penstock.prep.rewrite.folder import whole_folder
from penstock.prep.rewrite.layout import plan_output
from penstock.prep.rewrite.memory import share_memory, share_verifying
from penstock.prep.rewrite.options import RewriteOptions
from penstock.prep.rewrite.output import OutputFiles
from penstock.prep.rewrite.room import check_room, room_needed
from penstock.prep.rewrite.shuffling import ExternalShuffle
from penstock.prep.rewrite.summary import RewriteSummary
from penstock.prep.rewrite.tally import Tally
from penstock.readers.files import DataFile
from penstock.readers.origin import ROW_COLUMN
from penstock.readers.reading import read_blocks
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Survey, Wanted
from penstock.readers.survey import survey as take_survey
from penstock.runtime.memory import tree_bytes

CountRows: TypeAlias = Callable[[int], None]


class Watcher:
    """Hears how the work goes on; this one keeps it for itself."""

    def note(self, line: str) -> None:
        """A line that may interest somebody."""

    def stage(self, name: str, num_rows: int) -> AbstractContextManager[CountRows]:
        """A part of the work begins: what to call with the number of rows that are done."""
        del name, num_rows
        return nullcontext(lambda num_rows: None)


def rewrite(
    source: Survey,
    out: Path,
    options: RewriteOptions,
    *,
    overwrite: bool = False,
    watcher: Watcher | None = None,
) -> RewriteSummary:
    """Write the rows of a survey to Parquet files in `out`, a folder that is whole or absent.

    Given the rows and the seed, their order is fixed: the memory, files and row groups have no part in it.
    """
    inputs = [file.path for file in source.files]
    with whole_folder(out, inputs, overwrite) as folder:
        summary = _Work(source, folder, options, watcher or Watcher()).run()
        summary.save(folder)
    return summary


class _Work:
    """One rewrite: what all its parts share."""

    def __init__(self, source: Survey, folder: Path, options: RewriteOptions, watcher: Watcher) -> None:
        self._source, self._folder, self._options, self._watcher = source, folder, options, watcher
        row_bytes = source.row_bytes
        pa.default_memory_pool().release_unused()
        self._shares = share_memory(source, options, tree_bytes())
        expected = estimate(source, self._shares.reader, options)
        self._layout = plan_output(source.num_rows, row_bytes, expected.output_bytes, options)
        pa.default_memory_pool().release_unused()
        needed_bytes = room_needed(expected, self._shares.shuffle.bucket_bytes)
        watcher.note(check_room(folder, needed_bytes, expected))
        self._read = Tally()

    def run(self) -> RewriteSummary:
        """Write, check, and tell."""
        files = self._shuffled() if self._options.shuffle else self._straight()
        self._check(files.paths)
        return RewriteSummary(
            num_rows=self._read.num_rows,
            checksum=self._read.checksum,
            num_files=len(files.paths),
            num_row_groups=files.num_row_groups,
            rows_per_row_group=-(-self._read.num_rows // max(1, files.num_row_groups)),
            bytes_read=sum(file.size_bytes for file in self._source.files),
            bytes_written=sum(path.stat().st_size for path in files.paths),
            compression=self._options.compression,
            seed=self._options.seed if self._options.shuffle else None,
            verified=self._options.verify,
            inputs=[file.path for file in self._source.files],
        )

    def _straight(self) -> OutputFiles:
        with self._stage("rewriting") as count, self._output() as files:
            for batch in self._rows(count):
                files.write(batch, is_view=True)
        return files

    def _shuffled(self) -> OutputFiles:
        shuffle = ExternalShuffle(
            self._folder / "buckets", self._source.columns, self._options.seed, self._shares.shuffle
        )
        written = Tally()
        with closing(shuffle):
            with self._stage("scattering") as count:
                row_bytes = self._source.row_bytes + KEY_BYTES
                buckets = shuffle.scatter(self._rows(count), self._source.num_rows * row_bytes)
            with self._stage("writing") as count, self._output() as files:
                for batch in _counted(shuffle.gather(buckets), written, count):
                    files.write(batch, is_view=False)
        self._compare(written, "the temporary files")
        return files

    def _rows(self, count: CountRows) -> Iterator[pa.RecordBatch]:
        """The rows of the input, counted as they are read."""
        stream = read_blocks(self._source, self._shares.reader)
        yield from _counted((batch.drop_columns([ROW_COLUMN]) for batch in stream), self._read, count)

    def _output(self) -> OutputFiles:
        return OutputFiles(
            self._folder,
            self._source.columns,
            self._layout,
            self._options.row_group_bytes,
            self._options.compression,
        )

    def _stage(self, name: str) -> AbstractContextManager[CountRows]:
        return self._watcher.stage(name, self._source.num_rows)

    def _check(self, paths: Sequence[Path]) -> None:
        """As many rows as were read must be in the files; if asked for, exactly these."""
        num_rows = sum(pq.read_metadata(path).num_rows for path in paths)
        if num_rows != self._read.num_rows:
            raise DataError(
                f"{num_rows} rows were written but {self._read.num_rows} were read; rewrite again"
            )
        if self._options.verify:
            self._compare(self._read_back(paths), "the written files")

    def _read_back(self, paths: Sequence[Path]) -> Tally:
        files = [DataFile(str(path), path.stat().st_size) for path in paths]
        written = take_survey(ReadingSection(), files, Wanted())
        pa.default_memory_pool().release_unused()
        stream = read_blocks(written, share_verifying(written, self._options, tree_bytes()))
        found = Tally()
        with self._stage("verifying") as count:
            for _ in _counted((batch.drop_columns([ROW_COLUMN]) for batch in stream), found, count):
                pass
        return found

    def _compare(self, found: Tally, where: str) -> None:
        if (found.num_rows, found.checksum) != (self._read.num_rows, self._read.checksum):
            raise DataError(
                f"{self._folder}: the rows of {where} are not those that were read ({found.num_rows} with checksum "
                f"{found.checksum}, not {self._read.num_rows} with {self._read.checksum}); is the disk sound?"
            )


def _counted(batches: Iterable[pa.RecordBatch], tally: Tally, count: CountRows) -> Iterator[pa.RecordBatch]:
    """The batches, added to a tally on their way."""
    for batch in batches:
        tally.add(batch)
        yield batch
        count(batch.num_rows)
