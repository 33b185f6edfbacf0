"""What can be known of files before they are read, and before anybody decides how many bytes reading may take."""

from collections.abc import Collection, Sequence
from typing import Protocol

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers import READERS
from penstock.readers.files import TYPE_OF_SUFFIX, DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import Reader
from penstock.runtime.budget import Share


class Survey(Protocol):
    """Types, sizes and needs of some columns of some files; taken once, opened as often as needed."""

    @property
    def files(self) -> tuple[DataFile, ...]:
        """The files, as they were given."""
        ...

    @property
    def schema(self) -> pa.Schema:
        """The columns of every batch, `ROW_COLUMN` last."""
        ...

    @property
    def num_rows(self) -> int | None:
        """Rows of one epoch, where the files tell without being read."""
        ...

    @property
    def row_bytes(self) -> int:
        """Bytes of a row in memory, estimated from rows of several places; at least 1."""
        ...

    @property
    def least_bytes(self) -> int:
        """The smallest share with which the files can be read, as far as a look can tell."""
        ...

    @property
    def ample_bytes(self) -> int:
        """The share with which the files are read fastest: more does not help."""
        ...

    def open(self, share: Share, block_shuffle_seed: int | None = None) -> Reader:
        """A stream over the rows, from their start."""
        ...


class TakeSurvey(Protocol):
    """How a format is surveyed: what a module of this package offers under its dataset type."""

    def __call__(
        self,
        reading: ReadingSection,
        files: Sequence[DataFile],
        columns: Sequence[str] | None,
        text_columns: Collection[str] = (),
    ) -> Survey: ...


def survey(
    reading: ReadingSection,
    files: Sequence[DataFile],
    columns: Sequence[str] | None,
    *,
    text_columns: Collection[str] = (),
) -> Survey:
    """Look at the files once: footers, headers and a few rows.

    `text_columns` are read as text where the files do not say a type and the run file does not declare one: what
    is hashed or looked up must not be a number in one file set and text in another ("02134" is not 2134).
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
    return READERS.get(dataset_type)(reading, files, columns, text_columns)


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
