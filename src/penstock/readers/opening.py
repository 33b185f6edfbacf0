"""From the reading options and the files to the stream that reads them."""

from collections.abc import Sequence
from typing import Protocol

from penstock.config.errors import DataError
from penstock.readers import READERS
from penstock.readers.files import TYPE_OF_SUFFIX, DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Reader
from penstock.runtime.budget import Share


class OpenReader(Protocol):
    """How a format is opened: what a module of this package offers under its dataset type."""

    def __call__(
        self,
        reading: ReadingSection,
        files: Sequence[DataFile],
        columns: Sequence[str] | None,
        share: Share,
        *,
        block_shuffle_seed: int | None = None,
    ) -> Reader: ...


def open_reader(
    reading: ReadingSection,
    files: Sequence[DataFile],
    columns: Sequence[str] | None,
    share: Share,
    *,
    block_shuffle_seed: int | None = None,
) -> Reader:
    """A stream over the rows of the files, in their order or with blocks permuted per epoch by a seed.

    `columns` are those that are needed (None: all); the stream gives them in that order. The reader holds no
    more than its share. Missing columns, changed types and torn files are found here, before the first batch.
    """
    dataset_type = dataset_type_of(reading, files)
    if dataset_type not in READERS:
        raise DataError(
            f"{files[0].path}: {dataset_type} is not available yet; use ParquetDataset or CsvDataset"
        )
    if columns is not None and not columns:
        raise DataError(f"{files[0].path}: no column is wanted; name features or label_fields")
    for file in files:
        if file.size_bytes == 0:
            raise DataError(f"{file.path}: is empty (0 bytes); write it again or leave it out")
    return READERS.get(dataset_type)(reading, files, columns, share, block_shuffle_seed=block_shuffle_seed)


def dataset_type_of(reading: ReadingSection, files: Sequence[DataFile]) -> str:
    """The dataset type that the run file says, or that the suffix of all files stands for."""
    if reading.dataset_type is not None:
        return reading.dataset_type.value
    types = {TYPE_OF_SUFFIX.get(file.suffix): file for file in files}
    if None in types:
        raise DataError(
            f"{types[None].path}: the suffix does not tell the format; set data_config.dataset_type"
        )
    if len(types) > 1:
        first, second = list(types.values())[:2]
        raise DataError(f"{first.path} and {second.path} are of different formats; read them apart")
    return next(name for name in types if name is not None)
