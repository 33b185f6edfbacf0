"""What a Dataset begins with: `from_arrays`, and one function for each format of files."""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pydantic import ValidationError

from penstock.config.errors import ConfigError, DataError
from penstock.config.paths import format_path
from penstock.config.translate import value_problems
from penstock.pipeline.dataset.chain import Chain
from penstock.pipeline.dataset.dataset import Dataset
from penstock.pipeline.dataset.sources import Arrays, Files, NumpyFiles, Source, TFRecords
from penstock.pipeline.dataset.wording import own_words
from penstock.readers.arrays.held import MEMORY
from penstock.readers.files import DataFile, list_files
from penstock.readers.sections import DatasetType, Field, ReadingSection, parse_field_type

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""A file, a directory, a glob, or several of these."""

_TYPE_NAMES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "STR": "STRING"}


def from_arrays(arrays: Mapping[str, Any] | pa.Table) -> Dataset:
    """Columns in memory, or mapped into it: NumPy arrays, lists, Arrow arrays, or a whole table.

    All have one length, and row i of each belongs together. Nothing is copied: batches are views where they can be.
    """
    if isinstance(arrays, pa.Table):
        arrays = dict(zip(arrays.column_names, arrays.columns, strict=True))
    return _dataset(Arrays(MEMORY, {name: _array(name, values) for name, values in arrays.items()}), None)


def read_parquet(paths: Paths, columns: Sequence[str] | None = None) -> Dataset:
    """Rows of Parquet files; `columns`: only these are read."""
    return _files(DatasetType.ParquetDataset, paths, columns)


def read_csv(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    delimiter: str = ",",
    header: bool = True,
) -> Dataset:
    """Rows of CSV files, plain or compressed.

    `types` says the types of columns ("int64", "float32", "string", ...); the others are found from samples all over
    the files. Without a header, `types` names all columns in their order.
    """
    options = {"delimiter": delimiter, "with_header": header, "input_fields": _fields(types)}
    return _files(DatasetType.CsvDataset, paths, columns, options)


def read_json(
    paths: Paths, columns: Sequence[str] | None = None, *, types: Mapping[str, str] | None = None
) -> Dataset:
    """Rows of files with one JSON object in each line; `types` as in `read_csv`."""
    return _files(DatasetType.JsonDataset, paths, columns, {"input_fields": _fields(types)})


def read_arrow(paths: Paths, columns: Sequence[str] | None = None) -> Dataset:
    """Rows of Arrow IPC or Feather files."""
    return _files(DatasetType.ArrowDataset, paths, columns)


def read_numpy(paths: Paths, columns: Sequence[str] | None = None) -> Dataset:
    """Rows of `.npz` files, or of directories with one `.npy` file for each column."""
    return _files(DatasetType.NumpyDataset, paths, columns)


def read_store(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Dataset:
    """Rows of a directory of arrays: one `.npy` file for each column, all of one length."""
    if not os.path.isdir(path):
        raise DataError(f"{os.fspath(path)}: is no directory; a store is a directory of .npy files")
    return read_numpy(path, columns)


def read_tfrecord(
    paths: Paths, schema: Mapping[str, Any] | None = None, columns: Sequence[str] | None = None
) -> Dataset:
    """Rows of TFRecord files of tf.train.Example, without TensorFlow.

    `schema` says what the features are: `{"features": ("float32", 10), "label": "int64"}`; without one, a look at the
    records tells.
    """
    if schema is None:
        return _files(DatasetType.TFRecordDataset, paths, columns)
    files = _list(paths)
    return _dataset(TFRecords(_name(files), files, schema), columns)


def _array(name: str, values: Any) -> Any:
    """A NumPy or an Arrow array: what is none yet becomes one, with texts and lists of different lengths in Arrow."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if isinstance(values, list | tuple):
            return pa.array(values)
        array = np.asarray(values)
        return pa.array(array) if array.dtype.hasobject else array
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError.at(f"is no array: {error}", file=MEMORY, column=name) from error


def _files(
    kind: DatasetType, paths: Paths, columns: Sequence[str] | None, options: Mapping[str, Any] | None = None
) -> Dataset:
    files = _list(paths)
    try:
        section = ReadingSection(dataset_type=kind, **(options or {}))
    except ValidationError as error:
        problem = value_problems(error, ReadingSection)[0]
        raise ConfigError.at(format_path(problem.place), problem.message) from error
    source = NumpyFiles if kind is DatasetType.NumpyDataset else Files
    return _dataset(source(_name(files), section, files), columns)


def _dataset(source: Source, columns: Sequence[str] | None) -> Dataset:
    """The Dataset of a source; what is wrong with files and columns is found here."""
    if isinstance(columns, str):
        raise ConfigError.at("columns", f"is {columns!r}; give a list of names")
    chain = Chain(source, None if columns is None else tuple(columns))
    with own_words():
        chain.survey()
    return Dataset(chain)


def _list(paths: Paths) -> list[DataFile]:
    several = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    with own_words():
        files = [file for path in several for file in list_files(os.fspath(path))]
    if not files:
        raise DataError("no data path is given")
    twice = sorted(path for path, count in Counter(file.path for file in files).items() if count > 1)
    if twice:
        raise DataError(f"{twice[0]} is named twice; its rows would be read twice")
    return files


def _name(files: Sequence[DataFile]) -> str:
    return files[0].path if len(files) == 1 else f"{files[0].path} and {len(files) - 1} more"


def _fields(types: Mapping[str, str] | None) -> list[Field]:
    try:
        return [Field(input_name=name, input_type=_field_type(kind)) for name, kind in (types or {}).items()]
    except ValueError as error:
        raise ConfigError.at("types", str(error)) from error


def _field_type(kind: str) -> Any:
    return parse_field_type(_TYPE_NAMES.get(kind.upper(), kind))
