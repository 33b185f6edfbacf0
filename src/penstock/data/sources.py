"""Where the rows of a Dataset come from: files of one format, or arrays in memory."""

import os
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import KIB
from penstock.data.arguments import kind_of, mapping_argument
from penstock.readers.files import DataFile, list_files
from penstock.readers.numpy_files import MEMORY, FilePart, ScannedArrays, scan_arrays
from penstock.readers.order import Blocks
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of, scan_files
from penstock.readers.sections import Field, ReadingSection, parse_field_type
from penstock.readers.storage import open_input, read_at


def first_rows_of(scanned: ScannedFiles, num_rows: int) -> ScannedFiles:
    """A scan whose blocks hold the first rows of another's, in the order of the files."""
    blocks = scanned.blocks
    starts = np.cumsum(blocks.num_rows) - blocks.num_rows
    kept = int(np.searchsorted(starts, num_rows, side="left"))
    left = np.minimum(blocks.num_rows[:kept], num_rows - starts[:kept])
    # The blocks that are left have the numbers that they have in the whole: its decoder reads them.
    first = copy(scanned)
    first.blocks = Blocks(blocks.file_index[:kept], blocks.first_row[:kept], left)
    return first


_CALLS = {
    "ParquetDataset": ("Parquet", "read_parquet"),
    "CsvDataset": ("CSV", "read_csv"),
    "JsonDataset": ("JSON", "read_json"),
    "ArrowDataset": ("Arrow IPC", "read_arrow"),
    "TFRecordDataset": ("TFRecord", "read_tfrecord"),
    "NumpyDataset": ("NumPy", "read_numpy"),
}


_START_BYTES = 4 * KIB
_MAGIC = {
    b"PAR1": "ParquetDataset",
    b"ARROW1": "ArrowDataset",
    b"\xff\xff\xff\xff": "ArrowDataset",
    b"\x93NUMPY": "NumpyDataset",
}
"""With what files begin; the third is a stream of Arrow."""
_GZIP = b"\x1f\x8b"
_ZIP, _ZIP_NAME_AT = b"PK\x03\x04", 30
_DELIMITERS = ",\t;|\x01"


@contextmanager
def telling_other_formats(said: str, files: Sequence[DataFile]) -> Iterator[None]:
    """Where a file cannot be read and looks like another format, say that instead of what is wrong with its bytes."""
    try:
        yield
    except DataError as error:
        for file in files:
            if str(error).startswith(f"{file.path}: "):
                refuse_other_format(said, file, error)
        raise


def refuse_other_format(said: str, file: DataFile, cause: Exception | None = None) -> None:
    """An error where a file looks like another format than was said; nothing where that is not certain."""
    found = recognise(file)
    if found is None or found.dataset_type == said:
        return
    name, _ = _CALLS[said]
    looks, call = _CALLS[found.dataset_type]
    if found.is_gzip:
        looks += " compressed with gzip"
    options = f"(..., delimiter={found.delimiter!r})" if found.delimiter not in (None, ",") else ""
    raise DataError(f"{file.path}: looks like {looks}, not {name}; use {call}{options}") from cause


_Key = tuple[tuple[str, ...] | None, int | None]


@dataclass(eq=False)
class Source(ABC):
    """Something that can be looked at for some of its columns; each look is taken once."""

    name: str
    """For messages and for `repr`: the files, or what the arrays are."""
    _looks: dict[_Key, ScannedFiles] = field(default_factory=dict, init=False, repr=False)

    def scan(self, columns: tuple[str, ...] | None = None, num_rows: int | None = None) -> ScannedFiles:
        """Some columns (None: all) of the first rows (None: all)."""
        if (columns, num_rows) not in self._looks:
            found = self._look(columns) if num_rows is None else first_rows_of(self.scan(columns), num_rows)
            self._looks[columns, num_rows] = found
        return self._looks[columns, num_rows]

    def __getstate__(self) -> dict[str, Any]:
        """Looks may hold open files: another process takes its own."""
        return {**self.__dict__, "_looks": {}}

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of a row where it has more axes than one: Arrow has only lists for them."""
        return {}

    def advice_on_text(self, column: str) -> str:
        """What to do where a column is text and should be numbers."""
        return ""

    @abstractmethod
    def _look(self, columns: Sequence[str] | None) -> ScannedFiles:
        """A scan of these columns."""


@dataclass(eq=False)
class Files(Source):
    """Files of a format that a run file can read too."""

    reading: ReadingSection
    files: Sequence[DataFile]

    @property
    def _kind(self) -> str:
        return dataset_type_of(self.reading, self.files)

    def advice_on_text(self, column: str) -> str:
        """Types of text files are found from samples, unless they are said."""
        if self._kind not in ("CsvDataset", "JsonDataset"):
            return ""
        return (
            f"; where that is because of some bad values, say the type, types={{'{column}': 'float64'}}, and the first "
            "of them is named"
        )

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        found = self.scan() if self._kind == "NumpyDataset" else None
        if not isinstance(found, ScannedArrays) or not isinstance(part := found.parts[0], FilePart):
            return {}
        return _deep({name: array.shape for name, array in part.arrays.items()})

    def _look(self, columns: Sequence[str] | None) -> ScannedFiles:
        with telling_other_formats(self._kind, self.files):
            found = scan_files(self.reading, self.files, ReadRequest(columns))
        # Any text is CSV of some kind, and a look at lines that are no JSON finds no keys.
        first_name = next(iter(found.columns.names), "")
        if not first_name or first_name.startswith(("{", "[")):
            refuse_other_format(self._kind, self.files[0])
        return found


@dataclass(eq=False)
class TFRecords(Source):
    files: Sequence[DataFile]
    schema: Mapping[str, Any]

    def _look(self, columns: Sequence[str] | None) -> ScannedFiles:
        # Imported where it is needed: its kernels take a while to load.
        from penstock.readers.tfrecord import scan_tfrecord_with

        with telling_other_formats("TFRecordDataset", self.files):
            return scan_tfrecord_with(self.files, ReadRequest(columns), self.schema)


@dataclass(eq=False)
class ArraySource(Source):
    arrays: Mapping[str, Any]

    def _look(self, columns: Sequence[str] | None) -> ScannedFiles:
        return scan_arrays(self.arrays, ReadRequest(columns))

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        return _deep(
            {name: np.shape(array) for name, array in self.arrays.items() if isinstance(array, np.ndarray)}
        )


def _deep(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    return {name: shape[1:] for name, shape in shapes.items() if len(shape) > 2}


def columns_in(given: Any) -> dict[str, Any]:
    if isinstance(given, pa.Table | pa.RecordBatch):
        names: list[Any] = given.schema.names
        arrays = list(given.columns)
    elif isinstance(given, Mapping) or (hasattr(given, "items") and hasattr(given, "columns")):  # pandas
        names, arrays = list(given.keys()), [values for _, values in given.items()]
    else:
        advice = 'give a dict of arrays, such as {"x": features, "y": labels}, or a table'
        raise DataError(f"from_arrays: this is {kind_of(given)}; {advice}")
    for name, times in Counter(names).items():
        if not isinstance(name, str):
            raise DataError(f"from_arrays: {name!r} is no name; columns are named by texts")
        if times > 1:
            raise DataError.at(f"stands {times} times in this table", file=MEMORY, column=name)
    return {name: _array(name, values) for name, values in zip(names, arrays, strict=True)}


def _array(name: str, values: Any) -> Any:
    """What is no array yet becomes one, with texts and lists of different lengths in Arrow."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if isinstance(values, list | tuple):
            return pa.array(values)
        array = np.asarray(values)
        if array.dtype.hasobject and not array.ndim:
            problem = f"is {kind_of(values)}; give a NumPy array, a list or an Arrow array"
            raise DataError.at(problem, file=MEMORY, column=name)
        return pa.array(array) if array.dtype.hasobject else array
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError.at(f"is no array: {error}", file=MEMORY, column=name) from error


Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""A file, a directory, a glob, or several of these."""

_TYPE_NAMES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "STR": "STRING"}


def files_at(paths: Paths) -> list[DataFile]:
    several = [paths] if isinstance(paths, str | bytes | os.PathLike) else paths
    if not isinstance(several, Iterable):
        raise ConfigError.at("paths", f"is {kind_of(paths)}; give a path, or a list of paths")
    files = [file for path in several for file in list_files(path_text(path), cure="")]
    if not files:
        raise DataError("no data path is given")
    twice = sorted(path for path, count in Counter(file.path for file in files).items() if count > 1)
    if twice:
        raise DataError(f"{twice[0]} is named twice; its rows would be read twice")
    return files


def name_of_files(files: Sequence[DataFile]) -> str:
    return files[0].path if len(files) == 1 else f"{files[0].path} and {len(files) - 1} more"


def path_text(path: Any) -> str:
    if not isinstance(path, str | os.PathLike):
        raise ConfigError.at("paths", f"{path!r} is no path; give a text or a pathlib.Path")
    return os.fspath(path)


def fields_of(types: Any) -> list[Field]:
    fields = []
    for name, kind in mapping_argument("types", {} if types is None else types, "{'age': 'int64'}").items():
        if not isinstance(kind, str):
            raise ConfigError.at("types", f"of '{name}' is {kind!r}; write it as a text, such as 'int64'")
        try:
            field_type: Any = parse_field_type(_TYPE_NAMES.get(kind.upper(), kind))
            fields.append(Field(input_name=name, input_type=field_type))
        except ValueError as error:
            raise ConfigError.at("types", str(error)) from error
    return fields


# What a file looks like from its first bytes.


@dataclass(frozen=True, slots=True)
class Likeness:
    """The format that a file seems to have, for messages about a file that is not of the format that was said."""

    dataset_type: str
    delimiter: str | None = None  # of CSV: what stands between the cells of the first line
    is_gzip: bool = False


def recognise(file: DataFile) -> Likeness | None:
    """What a file looks like; None where nothing is certain enough, or the file cannot be read."""
    try:
        with open_input(file.path) as source:
            start = read_at(source, _START_BYTES, 0)
        if not start.startswith(_GZIP):
            return likeness_of(start)
        found = likeness_of(zlib.decompressobj(wbits=31).decompress(start, _START_BYTES))
    except (OSError, DataError, zlib.error):
        return None
    return None if found is None else replace(found, is_gzip=True)


def likeness_of(start: bytes) -> Likeness | None:
    r"""What begins like this.

    >>> likeness_of(b"user\tage\nann\t31\n")
    Likeness(dataset_type='CsvDataset', delimiter='\t', is_gzip=False)
    """
    for magic, dataset_type in _MAGIC.items():
        if start.startswith(magic):
            return Likeness(dataset_type)
    name_end = _ZIP_NAME_AT + int.from_bytes(start[26:28], "little")
    if start.startswith(_ZIP) and start[_ZIP_NAME_AT:name_end].endswith(b".npy"):
        return Likeness("NumpyDataset")
    # JSON or CSV, where the first line is text that people can read.
    try:
        line = start.lstrip().split(b"\n", 1)[0].decode("utf-8-sig").strip("\r")
    except UnicodeDecodeError:
        line = "\0"
    if not all(character.isprintable() or character in _DELIMITERS for character in line):
        from penstock.runtime.crc32c import masked_crc32c  # it brings numba, for those whose file is binary

        is_record = len(start) >= 12 and int.from_bytes(start[8:12], "little") == masked_crc32c(
            np.frombuffer(start, np.uint8), 0, 8
        )
        return Likeness("TFRecordDataset") if is_record else None
    if line.startswith(('{"', "[{")) or line in ("{", "{}", "["):
        return Likeness("JsonDataset")
    delimiter = max(_DELIMITERS, key=line.count)
    return Likeness("CsvDataset", delimiter) if delimiter in line else None
