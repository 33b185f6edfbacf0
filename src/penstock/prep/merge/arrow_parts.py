"""Targets of many files: each task writes one for each split, in groups of rows of bounded size.

    train/part-00000.parquet  train/part-00001.parquet  val/part-00000.parquet ...

The samples are in the order of the names. An array is a column of numbers, or of lists of fixed size.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.config.errors import DataError
from penstock.config.sizes import KIB, MIB
from penstock.prep.merge.batches import BatchReader, Rows
from penstock.prep.merge.layouts import Wrote
from penstock.prep.merge.plan import MergePlan
from penstock.readers.store_schema import ArraySpec, StoreSchema
from penstock.runtime.checksums import file_checksum

GROUP_BYTES = 4 * MIB
"""Of a row group or record batch, before it is compressed."""

_SUFFIXES = {"parquet": ".parquet", "ipc": ".arrow"}


def check_types(schema: StoreSchema, target: str) -> None:
    for spec in schema.arrays:
        try:
            is_held = spec.dtype.kind in "fiub" and (target != "parquet" or spec.width != 0)
            _arrow_type(spec)
        except pa.ArrowNotImplementedError:
            is_held = False
        if not is_held:
            raise DataError(
                f"array '{spec.name}' is {spec}, which target {target} does not hold; leave it out, or merge to npy"
            )


def _arrow_type(spec: ArraySpec) -> Any:
    value_type: Any = pa.from_numpy_dtype(spec.dtype.newbyteorder("="))
    if spec.width is None:
        return value_type
    return pa.list_(pa.field("item", value_type, nullable=False), spec.width)


def _arrow_array(spec: ArraySpec, rows: Rows) -> Any:
    if spec.width == 0:
        return pa.array([[]] * len(rows), _arrow_type(spec))
    values = pa.array(rows.reshape(-1).view(spec.dtype).astype(spec.dtype.newbyteorder("="), copy=False))
    return values if spec.width is None else pa.FixedSizeListArray.from_arrays(values, type=_arrow_type(spec))


class PartFiles:
    """The files of a task, opened when a split has its first samples."""

    def __init__(self, folder: Path, number: int, plan: MergePlan) -> None:
        self._folder, self._schema, self._options = folder, plan.schema, plan.options
        self._name = f"part-{number:05d}{_SUFFIXES[plan.options.target]}"
        self._arrow_schema = pa.schema(
            [pa.field(spec.name, _arrow_type(spec), nullable=False) for spec in self._schema.arrays]
        )
        self.group_rows = max(1, GROUP_BYTES // max(1, self._schema.row_bytes))
        self._writers: dict[str, Any] = {}
        self._groups: dict[str, dict[str, Rows]] = {}
        """Samples of each split that wait until there are enough of them to be written at once."""
        self._filled: dict[str, int] = {}
        self.wrote: Wrote = {}

    def write(self, split: str, columns: Mapping[str, Rows]) -> None:
        if split not in self._groups:
            self._groups[split] = {
                spec.name: np.empty((self.group_rows, spec.row_bytes), np.uint8)
                for spec in self._schema.arrays
            }
            self._filled[split] = 0
        done, num_rows = 0, len(next(iter(columns.values())))
        while done < num_rows:
            filled = self._filled[split]
            count = min(num_rows - done, self.group_rows - filled)
            for name, rows in self._groups[split].items():
                rows[filled : filled + count] = columns[name][done : done + count]
            self._filled[split] += count
            done += count
            if self._filled[split] == self.group_rows:
                self._write_group(split)

    def _write_group(self, split: str) -> None:
        if split not in self._writers:
            (self._folder / split).mkdir(exist_ok=True)
            self._writers[split] = self._writer(self._folder / split / self._name)
        filled, self._filled[split] = self._filled[split], 0
        arrays = [_arrow_array(spec, self._groups[split][spec.name][:filled]) for spec in self._schema.arrays]
        self._writers[split].write_batch(pa.RecordBatch.from_arrays(arrays, schema=self._arrow_schema))

    def _writer(self, path: Path) -> Any:
        codec: Any = self._options.compression
        level = self._options.level
        if self._options.target == "parquet":
            return pq.ParquetWriter(
                path,
                self._arrow_schema,
                compression="gzip" if codec == "zlib" else codec,
                compression_level=level,
                use_dictionary=False,
                write_statistics=False,
            )
        options = pa.ipc.IpcWriteOptions(
            compression=None if codec == "none" else pa.Codec(codec, compression_level=level),
            use_threads=False,
        )
        return pa.ipc.new_file(str(path), self._arrow_schema, options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        for split, filled in self._filled.items():
            if filled and kind is None:
                self._write_group(split)
        for split, writer in self._writers.items():
            writer.close()
            path = self._folder / split / self._name
            self.wrote[split, f"{split}/{self._name}"] = path.stat().st_size, file_checksum(path)


def copy_to_parts(plan: MergePlan, files: PartFiles, chosen: range) -> None:
    for batch in chosen:
        numbers = plan.split_numbers(batch)
        with BatchReader(plan.batches, batch, keep_decoded=True) as reader:
            for first in range(0, reader.num_samples, files.group_rows):
                count = min(files.group_rows, reader.num_samples - first)
                # Copies, since the reader has one buffer.
                columns = {array: reader.rows(column, first, count).copy() for column, array in plan.columns}
                for split, name in enumerate(plan.splitter.names):
                    rows = np.flatnonzero(numbers[first : first + count] == split)
                    is_all = len(rows) == count
                    files.write(
                        name, columns if is_all else {array: found[rows] for array, found in columns.items()}
                    )


def group_sizes(path: Path) -> list[int]:
    if path.suffix == ".parquet":
        metadata = pq.read_metadata(path)
        return [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]
    with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
        return [reader.get_batch(group).num_rows for group in range(reader.num_record_batches)]


def read_group(path: Path, group: int) -> pa.Table:
    if path.suffix == ".parquet":
        # Through small buffers on one thread: else the group is there compressed too, and in the heaps of all threads.
        with pq.ParquetFile(path, pre_buffer=False, buffer_size=64 * KIB) as file:
            return file.read_row_group(group, use_threads=False)
    with pa.OSFile(str(path), "rb") as source, pa.ipc.open_file(source) as reader:
        return pa.Table.from_batches([reader.get_batch(group)])
