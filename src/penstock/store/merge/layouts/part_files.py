"""Targets of many files: each piece of work writes one for each split, in groups of rows of bounded size.

    train/part-00000.parquet  train/part-00001.parquet  val/part-00000.parquet ...

The samples are in the order of the names.
"""

import io
import zlib
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Any, BinaryIO, Self, cast

import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.sizes import MIB
from penstock.store.merge.layouts.arrow_rows import arrow_schema
from penstock.store.merge.layouts.row_group import RowGroup
from penstock.store.merge.layouts.targets import PartChecksums
from penstock.store.merge.options import MergeOptions
from penstock.store.merge.source.reading import Rows
from penstock.store.schema import StoreSchema

SUFFIXES = {"parquet": ".parquet", "ipc": ".arrow"}
GROUP_BYTES = 4 * MIB
"""Of a row group or record batch, before it is compressed."""

_PARQUET_CODECS: dict[str, Any] = {"none": "none", "zlib": "gzip", "zstd": "zstd", "lz4": "lz4"}


class CheckedFile(io.RawIOBase):
    """Takes the checksum of what is written to a file, from front to back."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.crc, self.num_bytes = 0, 0

    def writable(self) -> bool:
        """It is."""
        return True

    def write(self, content: Any) -> int:
        """All of it."""
        self.crc = zlib.crc32(content, self.crc)
        count = self._stream.write(content)
        self.num_bytes += count
        return count

    def tell(self) -> int:
        """How much was written."""
        return self.num_bytes


class PartFiles:
    """The files of a piece of work, opened when a split has its first samples."""

    def __init__(self, folder: Path, number: int, schema: StoreSchema, options: MergeOptions) -> None:
        self._folder, self._schema, self._options = folder, schema, options
        self._name = f"part-{number:05d}{SUFFIXES[options.target]}"
        self._files = ExitStack()
        self._open: dict[str, tuple[CheckedFile, Any]] = {}
        self._groups: dict[str, RowGroup] = {}
        self.checksums: PartChecksums = {}

    @property
    def group_rows(self) -> int:
        """Samples of a group."""
        return max(1, GROUP_BYTES // max(1, self._schema.row_bytes))

    def write(self, split: str, columns: Mapping[str, Rows], num_rows: int) -> None:
        """Add samples to a split; they wait until a group is full."""
        if split not in self._groups:
            self._groups[split] = RowGroup(self._schema, self.group_rows)
        group, done = self._groups[split], 0
        while done < num_rows:
            done += group.add(columns, done, num_rows - done)
            if group.is_full:
                self._write_group(split)

    def _write_group(self, split: str) -> None:
        if split not in self._open:
            self._open[split] = self._opened(split)
        self._open[split][1].write_batch(self._groups[split].take())

    def _opened(self, split: str) -> tuple[CheckedFile, Any]:
        path = self._folder / split / self._name
        path.parent.mkdir(exist_ok=True)
        file = CheckedFile(self._files.enter_context(path.open("wb")))
        return file, _WRITERS[self._options.target](file, arrow_schema(self._schema), self._options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._files:
            if error is None:
                self._finish()

    def _finish(self) -> None:
        for split, group in self._groups.items():
            if not group.is_empty:
                self._write_group(split)
        for split, (file, writer) in self._open.items():
            writer.close()
            self.checksums[split, f"{split}/{self._name}"] = file.crc, file.num_bytes


def _parquet_writer(file: CheckedFile, schema: pa.Schema, options: MergeOptions) -> Any:
    return pq.ParquetWriter(
        cast(IO[bytes], file),
        schema,
        compression=_PARQUET_CODECS[options.compression],
        compression_level=options.level,
        use_dictionary=False,
        write_statistics=False,
    )


def _ipc_writer(file: CheckedFile, schema: pa.Schema, options: MergeOptions) -> Any:
    name: Any = options.compression
    codec = None if name == "none" else pa.Codec(name, compression_level=options.level)
    write_options = pa.ipc.IpcWriteOptions(compression=codec, use_threads=False)
    return pa.ipc.new_file(pa.PythonFile(file, "w"), schema, options=write_options)


_WRITERS: dict[str, Callable[[CheckedFile, pa.Schema, MergeOptions], Any]] = {
    "parquet": _parquet_writer,
    "ipc": _ipc_writer,
}
