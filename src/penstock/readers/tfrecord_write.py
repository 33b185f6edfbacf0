"""`write_tfrecord`: tables, streams and arrays -> TFRecord files of tf.train.Example, without TensorFlow.

Columns are brought into three forms, int64, float32 and bytes, each of one array for all columns of its kind. Then
compiled loops measure and write the records of many rows at once, into files that are whole or absent.
"""

import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB
from penstock.readers.columns import is_list
from penstock.readers.order import Shard
from penstock.readers.stream import ROW_COLUMN
from penstock.readers.tfrecord_kernels import BYTES_KIND, FLOAT_KIND, FOOTER_BYTES, HEADER_BYTES, INT64_KIND
from penstock.runtime.crc32c import masked_crc32c
from penstock.runtime.kernels import view_kernel


class HasBatches(Protocol):
    def to_batches(self) -> Iterable[pa.RecordBatch]: ...


Rows = pa.Table | pa.RecordBatch | Iterable[pa.RecordBatch] | Mapping[str, Any] | HasBatches

_CHUNK_BYTES = 4 * MIB
_MAX_CHUNK_ROWS = 8192
_GZIP_SUFFIX = ".gz"
_PLAIN = {INT64_KIND: pa.int64(), FLOAT_KIND: pa.float32(), BYTES_KIND: pa.binary()}
_USABLE = "integers, bools, floats, strings, bytes, and lists of these"


def write_tfrecord(
    path: str | os.PathLike[str], rows: Rows, files: int = 1, compression: str | None = None
) -> list[str]:
    """Write rows as tf.train.Example; gives the paths of the files, which are there when all are whole.

    `rows` is a Dataset, a table, a record batch, an iterable of record batches such as a stream, or a mapping of NumPy
    arrays of one or two dimensions. Integers and bools become int64, floats float32 (a float64 is rounded), strings
    and bytes bytes, lists several values; a null is a feature that the record does not have, and `__row__` is left out.

    With `files` > 1 the names are like train-00000-of-00004.tfrecord, and all get the same number of rows, or one
    more. `compression` is "gzip", for a path that ends with .gz; None: what the path says.
    """
    paths = _paths(os.fspath(path), files, compression)
    staged = [
        os.path.join(os.path.dirname(final), f".{os.path.basename(final)}.{uuid.uuid4().hex}")
        for final in paths
    ]
    try:
        with ExitStack() as stack:
            targets: list[Any] = [stack.enter_context(pa.OSFile(staging, "wb")) for staging in staged]
            if paths[0].endswith(_GZIP_SUFFIX):
                streams = [pa.CompressedOutputStream(target, "gzip") for target in targets]
                targets = [stack.enter_context(stream) for stream in streams]
            _write(targets, rows)
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
    is_gzip = path.endswith(_GZIP_SUFFIX)
    if compression == "gzip" and not is_gzip:
        raise ConfigError.at(
            "compression", f"is 'gzip', but '{path}' does not end with .gz, which tells readers so"
        )
    if files == 1:
        return [path]
    stem, suffix = os.path.splitext(path.removesuffix(_GZIP_SUFFIX))
    suffix += _GZIP_SUFFIX if is_gzip else ""
    return [f"{stem}-{index:05}-of-{files:05}{suffix}" for index in range(files)]


def _write(targets: Sequence[Any], rows: Rows) -> None:
    num_rows = 0
    for table in _tables(rows):
        for index, target in enumerate(targets):
            # Each file gets its share of all rows so far, so that all files stay equally long.
            shard = Shard(index, len(targets))
            first_before, end_before = shard.bounds(num_rows)
            first, end = shard.bounds(num_rows + table.num_rows)
            part = table.slice(first - first_before, (end - end_before) - (first - first_before))
            row_bytes = max(1, part.nbytes // max(1, part.num_rows))
            chunk_rows = max(1, min(_MAX_CHUNK_ROWS, _CHUNK_BYTES // row_bytes))
            for chunk in part.to_batches(max_chunksize=chunk_rows):
                target.write(_encoded(chunk))
        num_rows += table.num_rows


def _tables(rows: Rows) -> Iterator[pa.Table]:
    """The rows, as they come; each table has the columns of the first, without the origin of rows."""
    if isinstance(rows, Mapping):
        rows = _table_of_arrays(rows)
    schema: pa.Schema | None = None
    is_whole = isinstance(rows, pa.Table | pa.RecordBatch)
    parts: Iterable[Any] = [rows] if is_whole else rows  # type: ignore[assignment]
    if not is_whole and hasattr(rows, "to_batches"):
        parts = rows.to_batches()
    for part in parts:
        table = pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part
        table = table.drop_columns(ROW_COLUMN) if ROW_COLUMN in table.schema.names else table
        if schema is None:
            schema = table.schema
            for field in schema:
                if _kind(field.type) is None and not pa.types.is_null(field.type):
                    raise DataError.at(
                        f"has type {field.type}, which a tf.train.Example cannot hold; it holds {_USABLE}: "
                        "cast it first",
                        column=field.name,
                    )
        elif not table.schema.equals(schema):
            raise DataError(
                f"the columns change from one batch to the next, from\n{schema}\nto\n{table.schema}"
            )
        yield table


def _table_of_arrays(arrays: Mapping[str, Any]) -> pa.Table:
    """NumPy arrays as columns; one of two dimensions has a list of fixed length in each row."""
    columns: dict[str, Any] = {}
    for name, given in arrays.items():
        values = np.asarray(given)
        if values.ndim not in (1, 2):
            raise DataError.at(f"has {values.ndim} dimensions; reshape it to rows and values", column=name)
        first = next(iter(columns), name)
        if columns and len(values) != len(columns[first]):
            counts = f"'{first}' has {len(columns[first])} rows but '{name}' has {len(values)}"
            raise DataError(f"{counts}; all arrays need as many")
        try:
            flat = pa.array(values.reshape(-1))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            problem = f"has type {values.dtype}, which cannot be written: {error}"
            raise DataError.at(problem, column=name) from error
        columns[name] = flat if values.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return pa.table(columns)


def _kind(value_type: Any) -> int | None:
    """Which list holds values of a type, or lists of them; None: no list does."""
    types = pa.types
    if is_list(value_type):
        return None if is_list(value_type.value_type) else _kind(value_type.value_type)
    if types.is_dictionary(value_type):
        return _kind(value_type.value_type)
    if types.is_integer(value_type) or types.is_boolean(value_type):
        return INT64_KIND
    if types.is_floating(value_type):
        return FLOAT_KIND
    is_bytes = str(value_type).removesuffix("_view").endswith(("string", "binary"))
    return BYTES_KIND if is_bytes or types.is_fixed_size_binary(value_type) else None


def _encoded(batch: pa.RecordBatch) -> memoryview:
    num_rows = batch.num_rows
    keys: list[bytes] = []
    kinds: list[int] = []
    absent: list[NDArray[np.bool_]] = []
    row_offsets: list[NDArray[np.int64]] = []
    values: dict[int, list[Any]] = {kind: [pa.array([], plain)] for kind, plain in _PLAIN.items()}
    for name, array in zip(batch.schema.names, batch.columns, strict=True):
        kind = _kind(array.type)
        if kind is None or array.null_count == num_rows:
            continue
        plain, offsets = _values(name, array, kind)
        keys.append(name.encode())
        kinds.append(kind)
        absent.append(pc.is_null(array).to_numpy(zero_copy_only=False))
        row_offsets.append(offsets + sum(map(len, values[kind])))
        values[kind].append(plain)
    integers, floats, strings = (pa.concat_arrays(values[kind]) for kind in _PLAIN)
    _, byte_ends, content = strings.buffers()
    columns = (
        np.frombuffer(b"".join(keys), np.uint8),
        np.cumsum([0, *map(len, keys)]),
        np.array(kinds, np.int64),
        np.array(absent, np.bool_).reshape(-1, num_rows),
        np.array(row_offsets, np.int64).reshape(-1, num_rows + 1),
        integers.fill_null(0).to_numpy().view(np.uint64),
        floats.fill_null(0).to_numpy().view(np.uint32),
        np.frombuffer(byte_ends, np.int32)[strings.offset :],
        np.frombuffer(content or b"", np.uint8),
    )
    sizes = (np.empty((num_rows, len(keys)), np.int64), np.empty(num_rows, np.int64))
    out = np.empty(_measure(columns, *sizes), np.uint8)
    _encode(columns, *sizes, out)
    return out.data


def _values(name: str, array: Any, kind: int) -> tuple[Any, NDArray[np.int64]]:
    """The values of all rows as int64, float32 or bytes, and which are whose."""
    offsets = np.arange(len(array) + 1)
    if is_list(array.type):
        lengths = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        array = array.flatten()
        if array.null_count:
            raise DataError.at("has a null inside a list, which a tf.train.Example cannot hold", column=name)
    try:
        if pa.types.is_dictionary(array.type):
            array = array.cast(array.type.value_type)
        if pa.types.is_boolean(array.type):
            array = array.cast(pa.int8())
        if pa.types.is_fixed_size_binary(array.type) or pa.types.is_binary_view(array.type):
            array = array.cast(pa.binary())
        return array.cast(_PLAIN[kind]), offsets
    except pa.ArrowInvalid as error:
        raise DataError.at(f"cannot be written as {_PLAIN[kind]}: {error}", column=name) from error


# Compiled. `columns`: the bytes of the keys, where each begins, kinds, which rows lack each feature, which values each
# row has, then the values of all columns: int64, float32 as bits, where bytes end (after a 0), and bytes. `_measure`
# says what all values and records take, so that `_encode` can write every size before what it is of.


@view_kernel
def _varint_bytes(value: Any) -> Any:
    size = 1
    while value >= np.uint64(128):
        value >>= np.uint64(7)
        size += 1
    return size


@view_kernel
def _sized_bytes(size: Any) -> Any:
    """What a field of so many bytes takes with its tag and its size."""
    return 1 + _varint_bytes(np.uint64(size)) + size


@view_kernel
def _list_bytes(kind: Any, values_bytes: Any) -> Any:
    """What a list takes without its own tag: bytes stand one by one, numbers packed, no number as nothing."""
    return values_bytes if kind == BYTES_KIND or values_bytes == 0 else _sized_bytes(values_bytes)


@view_kernel
def _measure(columns: Any, values_bytes: Any, features_bytes: Any) -> Any:
    """Fill the bytes of each row's values, by column, and of its Features; returns the bytes of all records."""
    _, key_offsets, kinds, absent, row_offsets, integers, _, byte_ends, _ = columns
    total = 0
    for row in range(len(features_bytes)):
        features_bytes[row] = 0
        for column in range(len(kinds)):
            if absent[column, row]:
                continue
            kind, first, end = kinds[column], row_offsets[column, row], row_offsets[column, row + 1]
            size = 4 * (end - first) if kind == FLOAT_KIND else 0
            if kind == BYTES_KIND:
                for i in range(first, end):
                    size += _sized_bytes(byte_ends[i + 1] - byte_ends[i])
            elif kind == INT64_KIND:
                for i in range(first, end):
                    size += _varint_bytes(integers[i])
            values_bytes[row, column] = size
            entry_bytes = _sized_bytes(key_offsets[column + 1] - key_offsets[column])
            entry_bytes += _sized_bytes(_sized_bytes(_list_bytes(kind, size)))
            features_bytes[row] += _sized_bytes(entry_bytes)
        total += HEADER_BYTES + _sized_bytes(features_bytes[row]) + FOOTER_BYTES
    return total


@view_kernel
def _put_varint(out: Any, at: Any, value: Any) -> Any:
    while value >= np.uint64(128):
        out[np.uint64(at)] = np.uint8(value & np.uint64(127)) | np.uint8(128)
        value >>= np.uint64(7)
        at += 1
    out[np.uint64(at)] = np.uint8(value)
    return at + 1


@view_kernel
def _put_tag(out: Any, at: Any, field: Any, size: Any) -> Any:
    out[np.uint64(at)] = np.uint8(8 * field + 2)
    return _put_varint(out, at + 1, np.uint64(size))


@view_kernel
def _put_word(out: Any, at: Any, word: Any, num_bytes: Any) -> Any:
    for i in range(num_bytes):
        out[np.uint64(at + i)] = np.uint8((np.uint64(word) >> np.uint64(8 * i)) & np.uint64(255))
    return at + num_bytes


@view_kernel
def _put_bytes(out: Any, at: Any, content: Any, begin: Any, end: Any) -> Any:
    """These bytes as a field 1."""
    at = _put_tag(out, at, 1, end - begin)
    for i in range(end - begin):
        out[np.uint64(at + i)] = content[np.uint64(begin + i)]
    return at + end - begin


@view_kernel
def _encode(columns: Any, values_bytes: Any, features_bytes: Any, out: Any) -> None:
    keys, key_offsets, kinds, absent, row_offsets, integers, floats, byte_ends, content = columns
    at = 0
    for row in range(len(features_bytes)):
        record = at
        at = _put_tag(out, record + HEADER_BYTES, 1, features_bytes[row])
        for column in range(len(kinds)):
            if absent[column, row]:
                continue
            kind, key, key_end = kinds[column], key_offsets[column], key_offsets[column + 1]
            size = _list_bytes(kind, values_bytes[row, column])
            at = _put_tag(out, at, 1, _sized_bytes(key_end - key) + _sized_bytes(_sized_bytes(size)))
            at = _put_bytes(out, at, keys, key, key_end)
            at = _put_tag(out, at, 2, _sized_bytes(size))
            at = _put_tag(out, at, kind, size)
            if kind != BYTES_KIND and size > 0:
                at = _put_tag(out, at, 1, values_bytes[row, column])
            for i in range(row_offsets[column, row], row_offsets[column, row + 1]):
                if kind == BYTES_KIND:
                    at = _put_bytes(out, at, content, byte_ends[i], byte_ends[i + 1])
                elif kind == FLOAT_KIND:
                    at = _put_word(out, at, floats[i], 4)
                else:
                    at = _put_varint(out, at, integers[i])
        _put_word(out, record, at - record - HEADER_BYTES, 8)
        _put_word(out, record + 8, masked_crc32c(out, record, record + 8), 4)
        at = _put_word(out, at, masked_crc32c(out, record + HEADER_BYTES, at), 4)
