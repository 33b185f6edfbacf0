"""What a Dataset begins with: `from_arrays`, and one function for each format of files."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from penstock.config.errors import ConfigError, DataError
from penstock.config.load import value_problems
from penstock.data.arguments import flag_argument, mapping_argument, names_argument, own_words
from penstock.data.chain import Chain
from penstock.data.dataset import Dataset
from penstock.data.sources import (
    ArraySource,
    Files,
    Paths,
    Source,
    TFRecords,
    columns_in,
    fields_of,
    files_at,
    name_of_files,
    path_text,
)
from penstock.readers.numpy_files import MEMORY
from penstock.readers.sections import ReadingSection


def from_arrays(arrays: Mapping[str, Any] | pa.Table) -> Dataset:
    """Columns in memory, or mapped into it: NumPy arrays, lists, Arrow arrays, or a whole table.

    All have one length, and row i of each belongs together. Nothing is copied: batches are views where they can be.
    """
    return _dataset(ArraySource(MEMORY, columns_in(arrays)), None)


def read_parquet(paths: Paths, columns: Sequence[str] | None = None) -> Dataset:
    """Rows of Parquet files; `columns`: only these are read."""
    return _files("ParquetDataset", paths, columns)


def read_csv(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    delimiter: str | None = None,
    header: bool = True,
    encoding: str = "utf-8",
    decimal: str = ".",
) -> Dataset:
    """Rows of CSV files, plain or compressed; `delimiter` absent: found among comma, tab, ; and |.

    `types` says the types of columns ("int64", "float32", "string", ...); the others are found from samples all over
    the files. Without a header, `types` names all columns in their order. `decimal`: "," where numbers are like 1,5.
    """
    with_header = flag_argument("read_csv", "header", header)
    options = {
        "delimiter": delimiter,
        "with_header": with_header,
        "encoding": encoding,
        "decimal": decimal,
        "input_fields": fields_of(types),
    }
    dataset = _files("CsvDataset", paths, columns, options)
    if columns is None:
        dataset.check_names(list(types or ()))
    return dataset


def read_json(
    paths: Paths,
    columns: Sequence[str] | None = None,
    *,
    types: Mapping[str, str] | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """Rows of files with one JSON object in each line; `types` as in `read_csv`."""
    return _files("JsonDataset", paths, columns, {"input_fields": fields_of(types), "encoding": encoding})


def read_arrow(paths: Paths, columns: Sequence[str] | None = None) -> Dataset:
    """Rows of Arrow IPC or Feather files."""
    return _files("ArrowDataset", paths, columns)


def read_numpy(paths: Paths, columns: Sequence[str] | None = None) -> Dataset:
    """Rows of `.npz` files, or of directories with one `.npy` file for each column."""
    return _files("NumpyDataset", paths, columns)


def read_store(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Dataset:
    """Rows of a directory of arrays: one `.npy` file for each column, all of one length."""
    if not os.path.isdir(path_text(path)):
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
        return _files("TFRecordDataset", paths, columns)
    features = mapping_argument("schema", schema, '{"features": ("float32", 10), "label": "int64"}')
    if not features:
        raise ConfigError.at("schema", "names no feature; leave it out to have all of them found")
    files = files_at(paths)
    return _dataset(TFRecords(name_of_files(files), files, features), columns)


def _files(
    kind: str, paths: Paths, columns: Sequence[str] | None, options: Mapping[str, Any] | None = None
) -> Dataset:
    files = files_at(paths)
    try:
        section = ReadingSection(dataset_type=kind, **(options or {}))
    except ValidationError as error:
        raise ConfigError(value_problems(error, ReadingSection)[:1]) from error
    return _dataset(Files(name_of_files(files), section, files), columns)


def _dataset(source: Source, columns: Sequence[str] | None) -> Dataset:
    """The Dataset of a source; what is wrong with files and columns is found here."""
    names = None if columns is None else names_argument("columns", columns)
    chain = Chain(source, None if names is None else dict(zip(names, names, strict=True)))
    with own_words():
        chain.scan()
    return Dataset(chain)
