"""`write_tfrecord`: rows of anything -> TFRecord files that are whole or absent."""

import os
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB
from penstock.prep.tfrecord.columns import column_table, encodable
from penstock.prep.tfrecord.encode import encode, measure
from penstock.prep.tfrecord.rows import Rows, tables_of
from penstock.readers.blocks import Shard

_CHUNK_BYTES = 4 * MIB
_MOST_CHUNK_ROWS = 8192
_GZIP_SUFFIX = ".gz"


def write_tfrecord(
    path: str | os.PathLike[str], rows: Rows, files: int = 1, compression: str | None = None
) -> list[str]:
    """Write rows as tf.train.Example; gives the paths of the files, which are there when all are whole.

    `rows` is a table, a record batch, an iterable of record batches such as a stream, or a mapping of NumPy arrays
    of one or two dimensions. Integers and bools become int64, floats float32 (a float64 is rounded), texts and bytes
    bytes, lists several values; a null is a feature that the record does not have, and `__row__` is left out.

    With `files` > 1 the names are like train-00000-of-00004.tfrecord, and all get the same number of rows, or one
    more. `compression` is "gzip", for a path that ends with .gz; None: what the path says.
    """
    paths = _paths(os.fspath(path), files, compression)
    staged = [
        os.path.join(os.path.dirname(final), f".{os.path.basename(final)}.{uuid.uuid4().hex}")
        for final in paths
    ]
    try:
        _write(staged, rows, is_compressed=paths[0].endswith(_GZIP_SUFFIX))
        for staging, final in zip(staged, paths, strict=True):
            os.replace(staging, final)
    except OSError as error:
        raise DataError(f"{os.fspath(path)}: cannot be written: {error.strerror or error}") from error
    finally:
        for staging in staged:
            if os.path.exists(staging):
                os.remove(staging)
    return paths


def _paths(path: str, files: int, compression: str | None) -> list[str]:
    if files < 1:
        raise ConfigError.at("files", f"is {files}; rows are written to 1 file or more")
    if compression not in (None, "gzip"):
        raise ConfigError.at("compression", f"is {compression!r}; known: 'gzip'")
    if compression == "gzip" and not path.endswith(_GZIP_SUFFIX):
        raise ConfigError.at(
            "compression", f"is 'gzip', but '{path}' does not end with .gz, which tells readers so"
        )
    if files == 1:
        return [path]
    is_gzip = path.endswith(_GZIP_SUFFIX)
    stem, suffix = os.path.splitext(path.removesuffix(_GZIP_SUFFIX))
    suffix += _GZIP_SUFFIX if is_gzip else ""
    return [f"{stem}-{index:05}-of-{files:05}{suffix}" for index in range(files)]


def _write(paths: list[str], rows: Rows, is_compressed: bool) -> None:
    num_rows = 0
    with ExitStack() as stack:
        targets = [stack.enter_context(_open(path, is_compressed)) for path in paths]
        for table in tables_of(rows):
            for index, target in enumerate(targets):
                for chunk in _chunks(_part(table, num_rows, Shard(index, len(targets)))):
                    target.write(encoded(chunk))
            num_rows += table.num_rows


def _open(path: str, is_compressed: bool) -> Any:
    target = pa.OSFile(path, "wb")
    return pa.CompressedOutputStream(target, "gzip") if is_compressed else target


def _part(table: pa.Table, num_before: int, shard: Shard) -> pa.Table:
    """The rows of a table that go to one of several files, so that all files stay equally long."""
    first_before, end_before = shard.bounds(num_before)
    first, end = shard.bounds(num_before + table.num_rows)
    return table.slice(first - first_before, (end - end_before) - (first - first_before))


def _chunks(table: pa.Table) -> Iterator[pa.RecordBatch]:
    """A few MiB of rows at a time."""
    row_bytes = max(1, table.nbytes // max(1, table.num_rows))
    yield from table.to_batches(max_chunksize=max(1, min(_MOST_CHUNK_ROWS, _CHUNK_BYTES // row_bytes)))


def encoded(batch: pa.RecordBatch) -> memoryview:
    """The records of some rows."""
    found = (encodable(name, column) for name, column in zip(batch.schema.names, batch.columns, strict=True))
    columns = [column for column in found if column is not None]
    table = column_table(columns)
    list_bytes = np.empty((batch.num_rows, len(columns)), np.int64)
    features_bytes = np.empty(batch.num_rows, np.int64)
    out = np.empty(measure(table, list_bytes, features_bytes), np.uint8)
    encode(table, list_bytes, features_bytes, out)
    return out.data
