"""Where the rows of a Dataset come from: files of one format, or arrays and tables in memory."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.pipeline.dataset.first_rows import first_rows_of
from penstock.pipeline.dataset.other_formats import refuse_other_format, telling_other_formats
from penstock.readers.files import DataFile
from penstock.readers.memory_arrays import survey_arrays
from penstock.readers.numpy_files import NumpySurvey
from penstock.readers.sections import DatasetType, ReadingSection
from penstock.readers.survey import Survey, Wanted, dataset_type_of, survey

_Key = tuple[tuple[str, ...] | None, int | None]


@dataclass(eq=False)
class Source(ABC):
    """Something that can be looked at for some of its columns; each look is taken once."""

    name: str
    """For messages and for `repr`: the files, or what the arrays are."""
    _looks: dict[_Key, Survey] = field(default_factory=dict, init=False, repr=False)

    def survey(self, columns: tuple[str, ...] | None = None, num_rows: int | None = None) -> Survey:
        """Some columns (None: all) of the first rows (None: all)."""
        if (columns, num_rows) not in self._looks:
            found = self._look(columns) if num_rows is None else first_rows_of(self.survey(columns), num_rows)
            self._looks[columns, num_rows] = found
        return self._looks[columns, num_rows]

    def __getstate__(self) -> dict[str, Any]:
        """Looks may hold open files: another process takes its own."""
        return {**self.__dict__, "_looks": {}}

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of a row of columns that have more axes than one: Arrow has only lists for them."""
        return {}

    def no_column(self, name: str) -> DataError:
        """That there is no such column, with the nearest."""
        return DataError(
            f"{self.name}: there is no column '{name}'; {hint(name, self.survey().columns.names)}"
        )

    def advice_on_text(self, column: str) -> str:
        """What to do where a column is text and should be numbers."""
        return ""

    @abstractmethod
    def _look(self, columns: Sequence[str] | None) -> Survey:
        """A survey of these columns."""


@dataclass(eq=False)
class Files(Source):
    """Files of a format that a run file can read too."""

    reading: ReadingSection
    files: Sequence[DataFile]

    @property
    def _kind(self) -> DatasetType:
        return DatasetType(dataset_type_of(self.reading, self.files))

    def advice_on_text(self, column: str) -> str:
        """Types of text files are found from samples, unless they are said."""
        if self._kind not in (DatasetType.CsvDataset, DatasetType.JsonDataset):
            return ""
        return (
            f"; where that is because of some bad values, say the type, types={{'{column}': 'float64'}}, and the first "
            "of them is named"
        )

    def _look(self, columns: Sequence[str] | None) -> Survey:
        with telling_other_formats(self._kind, self.files):
            found = survey(self.reading, self.files, Wanted(columns))
        # Any text is CSV of some kind, and a look at lines that are no JSON finds no keys.
        first_name = next(iter(found.columns.names), "")
        if not first_name or first_name.startswith(("{", "[")):
            refuse_other_format(self._kind, self.files[0])
        return found


class NumpyFiles(Files):
    """NumPy files, whose arrays may have any number of axes."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """As the headers say."""
        survey = self.survey()
        if not isinstance(survey, NumpySurvey) or not survey.parts:
            return {}
        return _deep({name: array.shape for name, array in survey.parts[0].arrays.items()})


@dataclass(eq=False)
class TFRecords(Source):
    """TFRecord files with the features that they are said to have."""

    files: Sequence[DataFile]
    schema: Mapping[str, Any]

    def _look(self, columns: Sequence[str] | None) -> Survey:
        # Imported where it is needed: its kernels take a while to load.
        from penstock.readers.tfrecord.survey import survey_tfrecord_with

        with telling_other_formats(DatasetType.TFRecordDataset, self.files):
            return survey_tfrecord_with(self.files, Wanted(columns), self.schema)


@dataclass(eq=False)
class Arrays(Source):
    """Arrays in memory or mapped into it."""

    arrays: Mapping[str, Any]

    def _look(self, columns: Sequence[str] | None) -> Survey:
        return survey_arrays(self.arrays, Wanted(columns))

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """As the arrays are."""
        return _deep(
            {name: np.shape(array) for name, array in self.arrays.items() if isinstance(array, np.ndarray)}
        )


def _deep(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Of a row, where it has more than one axis."""
    return {name: shape[1:] for name, shape in shapes.items() if len(shape) > 2}
