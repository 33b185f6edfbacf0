"""A file that is of another format than the call that reads it: which one, and which call reads that."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.recognition import Likeness, recognise
from penstock.readers.sections import DatasetType

_CALLS = {
    DatasetType.ParquetDataset: ("Parquet", "read_parquet"),
    DatasetType.CsvDataset: ("CSV", "read_csv"),
    DatasetType.JsonDataset: ("JSON", "read_json"),
    DatasetType.ArrowDataset: ("Arrow IPC", "read_arrow"),
    DatasetType.TFRecordDataset: ("TFRecord", "read_tfrecord"),
    DatasetType.NumpyDataset: ("NumPy", "read_numpy"),
}


@contextmanager
def telling_other_formats(said: DatasetType, files: Sequence[DataFile]) -> Iterator[None]:
    """Where a file cannot be read and looks like another format, say that instead of what is wrong with its bytes."""
    try:
        yield
    except DataError as error:
        for file in files:
            if str(error).startswith(f"{file.path}: "):
                refuse_other_format(said, file, error)
        raise


def refuse_other_format(said: DatasetType, file: DataFile, cause: Exception | None = None) -> None:
    """An error where a file looks like another format than was said; nothing where that is not certain."""
    found = recognise(file)
    if found is None:
        return
    is_unnamed_gzip = found.is_gzip and not file.path.endswith(".gz")
    if found.dataset_type == said and not is_unnamed_gzip:
        return
    name, _ = _CALLS[said]
    looks, call = _CALLS[found.dataset_type]
    if found.is_gzip:
        looks += " compressed with gzip"
    advice = f"use {call}{_options(found)}" if found.dataset_type != said else ""
    if is_unnamed_gzip:
        advice += f"{', and ' if advice else ''}let its name end with .gz"
    wrong = f"looks like {looks}" + (f", not {name}" if found.dataset_type != said else "")
    raise DataError(f"{file.path}: {wrong}; {advice}") from cause


def _options(found: Likeness) -> str:
    return f"(..., delimiter={found.delimiter!r})" if found.delimiter not in (None, ",") else ""
