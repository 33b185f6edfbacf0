"""Any data set -> well-sized Parquet files, in the order of the data or in a random one, in bounded memory.

Every row draws a 64-bit key from the seed; the shuffled order is that of the keys. So it depends on the rows, their
order and the seed, and on nothing else: not on the memory, the files or the row groups. The output appears under its
name when it is whole, with as many rows as were read, and the same ones.
"""

import json
import logging
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import BudgetExceeded, ConfigError, DataError, hint
from penstock.config.sizes import KIB, MIB, format_size
from penstock.prep.external_shuffle import KEY_BYTES, TEMPORARY_OPTIONS, ExternalShuffle, ShuffleSizes
from penstock.readers.files import DataFile
from penstock.readers.hashes import row_hashes
from penstock.readers.order import Shard, derive_generator
from penstock.readers.scan import BlockStream, ReadRequest, ScannedFiles, scan_files
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import ROW_COLUMN
from penstock.runtime.budget import Share
from penstock.runtime.durable import check_replaceable, sync_path, whole_folder
from penstock.runtime.memory import memory_limit, tree_bytes

SUMMARY_NAME = "_rewrite.json"
"""Readers of folders leave out names that begin with an underscore."""
COMPRESSIONS = ("zstd", "snappy", "none")
_MIN_SIZE_BYTES = 64 * KIB
_GROUP_COPIES = 3
"""A row group that waits, the last piece beyond it, and its columns as they are encoded."""
_BUCKET_COPIES = 2.5
"""A bucket as it is read, as it is joined, and the rows that are drawn from it."""
_WAITING_COPIES = 2
"""Rows that wait for their buckets, and what is being written of them."""
_MIN_WAITING_BYTES, _MAX_WAITING_BYTES = 8 * MIB, 128 * MIB
_MIN_BUCKET_BYTES, _MAX_BUCKET_BYTES = 4 * MIB, 512 * MIB
"""The offsets of strings of one bucket must fit 31 bits, and larger ones are not faster."""
_PIECES = 16
"""What waits is so many times what is taken at once."""
_SAMPLE_BLOCKS, _SAMPLE_ROWS = 16, 1 << 15
_HASHED_ROWS, _HASHED_BYTES = 1 << 14, 4 * MIB
"""Of rows that are hashed at a time: what is held beside them is about as much."""
_SETTING = "--memory"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """Order, sizes and memory; checked when made, so that nothing starts with a wrong one."""

    shuffle: bool = False
    seed: int = 0
    num_files: int | None = None
    """None: as many as `file_bytes` asks for."""
    file_bytes: int = 256 * MIB
    """About the size of a file on disk, where `num_files` does not say how many there are."""
    row_group_bytes: int = 32 * MIB
    """About what a row group takes in memory."""
    compression: str = "zstd"
    memory_bytes: int | None = None
    """Of the whole process; None: 512 MiB, and more where the process is large already."""
    verify: bool = False
    """Read the written files again and compare all rows."""

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise ConfigError(
                f"--compression: there is no '{self.compression}'; {hint(self.compression, COMPRESSIONS)}"
            )
        if self.num_files is not None and self.num_files < 1:
            raise ConfigError(f"--files is {self.num_files}; it must be at least 1")
        for option, num_bytes in (("--row-group", self.row_group_bytes), ("--file-size", self.file_bytes)):
            if num_bytes < _MIN_SIZE_BYTES:
                given, min_size = format_size(num_bytes), format_size(_MIN_SIZE_BYTES)
                raise ConfigError(f"{option} is {given}; it must be at least {min_size}")

    @property
    def parquet(self) -> dict[str, Any]:
        """How files are written: with checksums of pages, which the reader checks, and with the types of Arrow."""
        return {"compression": self.compression.upper(), "write_page_checksum": True, "store_schema": True}

    def usable_bytes(self, process_bytes: int) -> int:
        """What the process does not take already; an eighth of it stays free."""
        return max(0, memory_limit(self.memory_bytes, process_bytes) - process_bytes) * 7 // 8


@dataclass(frozen=True, slots=True)
class RewriteSummary:
    """What was written: shown to the user, and kept beside the files."""

    num_rows: int
    checksum: str
    """Sum of the hashes of all rows: equal for the same rows in any order."""
    num_files: int
    num_row_groups: int
    rows_per_row_group: int
    bytes_read: int
    bytes_written: int
    compression: str
    seed: int | None
    """None: the rows stand in the order of the input."""
    verified: bool
    """Whether the written files were read again."""
    inputs: Sequence[str]

    def describe(self) -> str:
        order = "in the order of the input" if self.seed is None else f"shuffled with seed {self.seed}"
        groups = f"{self.num_row_groups:,} of about {self.rows_per_row_group:,} rows"
        size = f"{format_size(self.bytes_written)} ({self.compression}), was {format_size(self.bytes_read)}"
        checked = "all rows read back" if self.verified else "rows read and written agree"
        return (
            f"{self.num_rows:,} rows {order}\n  files: {self.num_files:,}, row groups: {groups}\n  size: {size}\n"
            f"  checksum: {self.checksum} ({checked})"
        )


CountRows: TypeAlias = Callable[[int], None]
Stage: TypeAlias = Callable[[str, int], AbstractContextManager[CountRows]]
"""Called with the name of a part of the work and its rows; gives what is called with the rows that are done."""


def rewrite(
    source: ScannedFiles,
    out: Path,
    options: RewriteOptions,
    *,
    overwrite: bool = False,
    stage: Stage = lambda name, num_rows: nullcontext(lambda done: None),
) -> RewriteSummary:
    """Write the rows of a scan to Parquet files in `out`, a folder that is whole or absent."""
    check_output(out, [file.path for file in source.files], overwrite)
    with whole_folder(out) as folder:
        summary = _rewrite(source, folder, options, stage)
        (folder / SUMMARY_NAME).write_text(json.dumps(asdict(summary), indent=2) + "\n")
    return summary


def _rewrite(source: ScannedFiles, folder: Path, options: RewriteOptions, stage: Stage) -> RewriteSummary:
    pa.default_memory_pool().release_unused()
    share, sizes = share_memory(source, options, tree_bytes())
    temporary_bytes, output_bytes = estimate(source, share, options)
    groups = plan_output(source.num_rows, source.row_bytes, output_bytes, options)
    pa.default_memory_pool().release_unused()
    check_disk(folder, temporary_bytes, output_bytes, sizes.bucket_bytes)
    write = partial(write_files, folder=folder, schema=source.columns, files=groups, options=options)
    read, written = _Tally(), _Tally()
    if options.shuffle:
        random = derive_generator("rewrite", options.seed).bit_generator
        with closing(ExternalShuffle(folder / "buckets", source.columns, sizes)) as shuffle:
            with stage("scattering", source.num_rows) as count:
                rows = _rows(source, share, read, count)
                keyed = ((batch, random.random_raw(batch.num_rows)) for batch in rows)
                buckets = shuffle.scatter(keyed, source.num_rows * (source.row_bytes + KEY_BYTES))
            with stage("writing", source.num_rows) as count:
                gathered = _counted(shuffle.gather(buckets), written, count)
                paths, num_row_groups = write(gathered, are_views=False)
        _compare(read, written, folder, "the temporary files")
    else:
        with stage("rewriting", source.num_rows) as count:
            paths, num_row_groups = write(_rows(source, share, read, count), are_views=True)
    num_rows = sum(pq.read_metadata(path).num_rows for path in paths)
    if num_rows != read.num_rows:
        raise DataError(f"{num_rows} rows were written but {read.num_rows} were read; rewrite again")
    if options.verify:
        # The written files are read; nothing else is at work then.
        files = [DataFile(str(path), path.stat().st_size) for path in paths]
        again, found = scan_files(ReadingSection(), files, ReadRequest()), _Tally()
        pa.default_memory_pool().release_unused()
        share_bytes = min(again.sizes.ample_bytes, options.usable_bytes(tree_bytes()))
        share = Share("the reader", max(again.sizes.min_bytes, share_bytes), _SETTING)
        with stage("verifying", source.num_rows) as count:
            for _ in _rows(again, share, found, count):
                pass
        _compare(read, found, folder, "the written files")
    return RewriteSummary(
        num_rows=num_rows,
        checksum=read.checksum,
        num_files=len(paths),
        num_row_groups=num_row_groups,
        rows_per_row_group=-(-num_rows // max(1, num_row_groups)),
        bytes_read=sum(file.size_bytes for file in source.files),
        bytes_written=sum(path.stat().st_size for path in paths),
        compression=options.compression,
        seed=options.seed if options.shuffle else None,
        verified=options.verify,
        inputs=[file.path for file in source.files],
    )


class _Tally:
    """Counts rows, and adds up their hashes modulo 2**64: the same number for the same rows in any order."""

    def __init__(self) -> None:
        self.num_rows = self._sum = 0

    def add(self, batch: pa.RecordBatch) -> None:
        self.num_rows += batch.num_rows
        piece_rows = max(1, min(_HASHED_ROWS, batch.num_rows * _HASHED_BYTES // max(1, batch.nbytes)))
        for start in range(0, batch.num_rows, piece_rows):
            hashes = row_hashes(batch.slice(start, piece_rows))
            self._sum = (self._sum + int(hashes.sum(dtype=np.uint64))) % 2**64

    @property
    def checksum(self) -> str:
        return f"{self._sum:016x}"


def _counted(batches: Iterable[pa.RecordBatch], tally: _Tally, count: CountRows) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        tally.add(batch)
        yield batch
        count(batch.num_rows)


def _rows(source: ScannedFiles, share: Share, tally: _Tally, count: CountRows) -> Iterator[pa.RecordBatch]:
    return _counted((batch.drop_columns([ROW_COLUMN]) for batch in BlockStream(source, share)), tally, count)


def _compare(read: _Tally, found: _Tally, folder: Path, where: str) -> None:
    if (found.num_rows, found.checksum) != (read.num_rows, read.checksum):
        raise DataError(
            f"{folder}: the rows of {where} are not those that were read ({found.num_rows} with checksum "
            f"{found.checksum}, not {read.num_rows} with {read.checksum}); is the disk sound?"
        )


def share_memory(
    source: ScannedFiles, options: RewriteOptions, process_bytes: int
) -> tuple[Share, ShuffleSizes]:
    """What reading and shuffling may hold; writing holds row groups as the options say.

    The passes of a shuffle come one after the other: the first has the reader and rows that wait for their buckets, the
    second a bucket and a row group.
    """
    usable_bytes = options.usable_bytes(process_bytes)
    group_bytes = _GROUP_COPIES * options.row_group_bytes
    if options.shuffle:
        for_reader_bytes = usable_bytes // 2
        min_bytes = max(
            source.sizes.min_bytes + _WAITING_COPIES * _MIN_WAITING_BYTES,
            group_bytes + int(_BUCKET_COPIES * _MIN_BUCKET_BYTES),
        )
    else:
        for_reader_bytes = usable_bytes - group_bytes
        min_bytes = source.sizes.min_bytes + group_bytes
    if usable_bytes < min_bytes:
        limit_bytes = memory_limit(options.memory_bytes, process_bytes)
        raise BudgetExceeded(
            f"rewriting needs at least {format_size(process_bytes + min_bytes * 8 // 7 + MIB)}, row groups of "
            f"{format_size(options.row_group_bytes)} among it, but may hold {format_size(limit_bytes)}; "
            f"raise {_SETTING}, or lower --row-group"
        )
    reader_bytes = max(source.sizes.min_bytes, min(source.sizes.ample_bytes, for_reader_bytes))
    waiting_bytes = min(_MAX_WAITING_BYTES, (usable_bytes - reader_bytes) // _WAITING_COPIES)
    sizes = ShuffleSizes(
        bucket_bytes=min(_MAX_BUCKET_BYTES, int((usable_bytes - group_bytes) / _BUCKET_COPIES)),
        waiting_bytes=waiting_bytes,
        piece_rows=max(1, min(waiting_bytes // _PIECES, options.row_group_bytes) // source.row_bytes),
    )
    return Share("the reader", reader_bytes, _SETTING), sizes


def estimate(source: ScannedFiles, share: Share, options: RewriteOptions) -> tuple[int, int]:
    """Bytes of the temporary files and of the output, from a sample that is written to memory in their forms."""
    blocks = source.blocks
    chosen = np.unique(np.linspace(0, len(blocks) - 1, min(len(blocks), _SAMPLE_BLOCKS), dtype=int)).tolist()
    max_rows = min(_SAMPLE_ROWS, share.limit_bytes // 4 // source.row_bytes) // max(1, len(chosen)) + 1
    batches = []
    with closing(source.decoder(share)) as decoder:
        for block in chosen:
            first = decoder.batches(block, 0, min(int(blocks.num_rows[block]), max_rows))
            # Copied, so that a block need not stay in memory for its first rows.
            batches += [batch.take(np.arange(batch.num_rows)) for batch in first]
    rows = pa.Table.from_batches(batches, source.columns)
    num_rows = rows.num_rows
    if not num_rows:
        return 0, 0
    if options.shuffle:  # rows out of order compress less
        rows = rows.combine_chunks().take(np.random.default_rng(0).permutation(num_rows))
    sink = pa.BufferOutputStream()
    pq.write_table(rows, sink, **options.parquet)
    output_bytes = sink.getvalue().size * source.num_rows // num_rows
    if not options.shuffle:
        return 0, output_bytes
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema, options=TEMPORARY_OPTIONS) as stream:
        stream.write_table(rows)
    return (sink.getvalue().size + num_rows * KEY_BYTES) * source.num_rows // num_rows, output_bytes


def check_disk(folder: Path, temporary_bytes: int, output_bytes: int, bucket_bytes: int) -> None:
    """Buckets are removed as the output grows from them. Estimates come from a sample: a tenth more must be free."""
    needed_bytes, parts = output_bytes, f"output {format_size(output_bytes)}"
    if temporary_bytes:
        needed_bytes = max(temporary_bytes, output_bytes) + min(bucket_bytes, temporary_bytes)
        parts += f", temporary files {format_size(temporary_bytes)}"
    needed_bytes = needed_bytes * 11 // 10
    free_bytes = shutil.disk_usage(folder).free
    if needed_bytes > free_bytes:
        raise DataError(
            f"{folder}: the disk has {format_size(free_bytes)} free but rewriting needs about "
            f"{format_size(needed_bytes)} ({parts}); free some, write to another disk, or take fewer --columns"
        )
    needed, free = format_size(needed_bytes), format_size(free_bytes)
    logger.info("disk: needs about %s (%s), has %s", needed, parts, free)


def plan_output(num_rows: int, row_bytes: int, output_bytes: int, options: RewriteOptions) -> list[list[int]]:
    """For each file the rows of its row groups, whose sizes differ by at most one; no rows: one file without any.

    >>> plan_output(10, 32 << 20, 1, RewriteOptions(num_files=2, row_group_bytes=96 << 20))
    [[3, 2], [3, 2]]
    """
    num_files = options.num_files or max(1, round(output_bytes / options.file_bytes))
    num_files = max(1, min(num_files, num_rows))
    max_rows = max(1, options.row_group_bytes // row_bytes)
    files = []
    for index in range(num_files):
        start, end = Shard(index, num_files).bounds(num_rows)
        num_groups = -(-(end - start) // max_rows)
        bounds = [Shard(group, num_groups).bounds(end - start) for group in range(num_groups)]
        files.append([group_end - group_start for group_start, group_end in bounds])
    return files


def write_files(
    batches: Iterator[pa.RecordBatch],
    folder: Path,
    schema: pa.Schema,
    files: Iterable[Iterable[int]],
    options: RewriteOptions,
    *,
    are_views: bool,
) -> tuple[list[Path], int]:
    """Write rows as they come, one row group in memory at a time; gives the files and the number of row groups.

    `files` are the rows of the row groups of each file. A row group is written early where its rows, larger than
    others, take twice the bytes that it should have: the order of rows is the same, the memory stays bounded.
    `are_views`: others own the memory of the rows, so that what waits for more rows is copied.
    """
    paths: list[Path] = []
    num_row_groups = 0
    batch = next(batches, None)
    for groups in files:
        paths.append(folder / f"part-{len(paths):05d}.parquet")
        with pq.ParquetWriter(paths[-1], schema, **options.parquet) as writer:
            for num_rows in groups:
                missing_rows, waiting, waiting_bytes = num_rows, list[pa.RecordBatch](), 0
                while missing_rows and batch is not None:
                    piece, batch = batch.slice(0, missing_rows), batch.slice(missing_rows)
                    missing_rows -= piece.num_rows
                    if missing_rows and are_views:
                        piece = piece.take(np.arange(piece.num_rows))
                    waiting.append(piece)
                    waiting_bytes += piece.nbytes
                    if not missing_rows or waiting_bytes > 2 * options.row_group_bytes:
                        table = pa.Table.from_batches(waiting, schema)
                        waiting, waiting_bytes = [], 0
                        writer.write_table(table, row_group_size=table.num_rows)
                        num_row_groups += 1
                        del table, piece  # nothing of it is held while more rows are read
                    if not batch.num_rows:
                        batch = next(batches, None)
        sync_path(paths[-1])
    return paths, num_row_groups


def check_output(out: Path, inputs: Iterable[str], overwrite: bool) -> None:
    """Refuse a folder whose content would be lost, and one that is being read."""
    check_replaceable(out, "rewritten data", SUMMARY_NAME, overwrite)
    for path in inputs:
        if "://" not in path and out.resolve() in Path(path).resolve().parents:
            name = Path(path).name
            raise ConfigError(f"{out}: holds the input {name}; choose another folder for the output")
