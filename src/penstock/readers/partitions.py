"""Columns that stand in the paths of files: `clicks/dt=2024-01-01/country=de/part-0.parquet`, as Hive and Spark write.

Every format has them: a scan of the files themselves, and constants that are appended to its batches.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.files import TYPE_OF_SUFFIX, DataFile, data_suffix, is_partition
from penstock.readers.order import Blocks
from penstock.readers.scan import BlockDecoder, Fingerprint, ReadRequest, ReadSizes, ScannedFiles
from penstock.runtime.budget import Share

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")  # not 01, which is another string than 1
_OFFSET_BYTES, _INTEGER_BYTES = 4, 8
_CONSTANT_BYTES = 256 * KIB  # of one batch: a larger one is cut
_OWN_BYTES = 2 * _CONSTANT_BYTES  # constants of one batch may be in use while those of the next are made


def partition_values(file: DataFile) -> dict[str, str | None]:
    """What the folders of a path say.

    >>> partition_values(DataFile("clicks/dt=2024-01-01/country=de/part-0.csv", 1))
    {'dt': '2024-01-01', 'country': 'de'}
    """
    parts = file.path.partition("?")[0].split("/")
    if data_suffix(file.path) in TYPE_OF_SUFFIX:  # otherwise it may be a folder of arrays
        parts.pop()
    pairs = [part.split("=", 1) for part in parts if is_partition(part)]
    return {unquote(key): None if value == _NULL else unquote(value) for key, value in pairs}


def scan_partitioned(
    scan: Callable[[ReadRequest], ScannedFiles],
    request: ReadRequest,
    keys: Sequence[str],
    declared: Mapping[str, Any],
) -> ScannedFiles:
    """A scan whose batches have the wanted partition columns too; a column of the files of the same name wins."""
    wanted, of_files = request.columns, request
    while wanted is not None and of_files.columns:
        try:
            inner = scan(of_files)
            break
        except DataError as error:
            missing = [key for key in keys if f"there is no column '{key}'" in str(error)]
            left = tuple(name for name in of_files.columns if name not in missing)
            if len(left) == len(of_files.columns):
                raise
            of_files = replace(of_files, columns=left)
    else:
        inner = scan(replace(request, columns=None))
        if wanted:  # nothing but partition columns: some column of the files counts their rows
            inner = scan(replace(request, columns=tuple(inner.columns.names[:1])))
    found = set(of_files.columns or ()) if wanted is not None else set(inner.columns.names)
    asked = [key for key in (keys if wanted is None else wanted) if key in keys and key not in found]
    if not asked:
        return inner
    rows = [partition_values(file) for file in inner.files]
    constants = {key: _constants([row[key] for row in rows], declared.get(key)) for key in asked}
    names = [*inner.columns.names, *asked] if wanted is None else wanted
    fields = [
        pa.field(name, constants[name].type) if name in constants else inner.columns.field(name)
        for name in names
    ]
    return ScannedPartitions(inner=inner, constants=constants, columns=pa.schema(fields))


def _constants(values: Sequence[str | None], declared: Any) -> Any:
    """The values of one key, one for each file: integers where all are, else strings."""
    known = [value for value in values if value is not None]
    if declared is None:
        declared = pa.int64() if known and all(map(_INTEGER.fullmatch, known)) else pa.string()
    return pa.array(values, pa.string()).cast(declared)


@dataclass(kw_only=True, eq=False)
class ScannedPartitions(ScannedFiles):
    inner: ScannedFiles
    constants: Mapping[str, Any]
    """Partition column -> its value in each file."""
    files: tuple[DataFile, ...] = field(init=False)
    fingerprints: tuple[Fingerprint, ...] = field(init=False)
    blocks: Blocks = field(init=False)

    def __post_init__(self) -> None:
        self.files, self.fingerprints = self.inner.files, self.inner.fingerprints
        self.blocks = self.inner.blocks
        self.constant_row_bytes = sum(map(_max_value_bytes, self.constants.values()))

    @property
    def row_bytes(self) -> int:
        return self.inner.row_bytes + self.constant_row_bytes

    @property
    def sizes(self) -> ReadSizes:
        inner = self.inner.sizes
        return ReadSizes(
            min_bytes=inner.min_bytes + _OWN_BYTES,
            ample_bytes=inner.ample_bytes + _OWN_BYTES,
            block_bytes=inner.block_bytes + _CONSTANT_BYTES,
            decoder_bytes=inner.decoder_bytes and inner.decoder_bytes + _OWN_BYTES,
        )

    def decoder(self, share: Share) -> BlockDecoder:
        return PartitionDecoder(self, share)


def _max_value_bytes(values: Any) -> int:
    if not pa.types.is_string(values.type):
        return _INTEGER_BYTES
    return _OFFSET_BYTES + int(pc.max(pc.binary_length(values)).as_py() or 0)


class PartitionDecoder(BlockDecoder):
    def __init__(self, scanned: ScannedPartitions, share: Share) -> None:
        self._scanned = scanned
        self._batch_rows = max(1, _CONSTANT_BYTES // scanned.constant_row_bytes)
        self._own = Share(share.name, min(_OWN_BYTES, share.limit_bytes), share.setting, whole=share)
        left_bytes = share.limit_bytes - self._own.limit_bytes
        self._inner = scanned.inner.decoder(Share(share.name, left_bytes, share.setting, whole=share))

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        scanned, self._inner.use_threads = self._scanned, self.use_threads
        if not self._own.held_bytes:
            self._own.acquire(self._own.limit_bytes)
        file_index = int(scanned.blocks.file_index[block])
        for batch in self._inner.batches(block, first_row, end_row):
            for start in range(0, batch.num_rows, self._batch_rows):
                rows = batch.slice(start, self._batch_rows)
                columns = [
                    pa.repeat(scanned.constants[name][file_index], rows.num_rows)
                    if name in scanned.constants
                    else rows.column(name)
                    for name in scanned.columns.names
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=scanned.columns)

    def close(self) -> None:
        self._inner.close()
        self._own.release(self._own.held_bytes)
