"""Where the rows of a Dataset come from: files of one format, or arrays and tables in memory."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from penstock.pipeline.dataset.first_rows import first_rows_of
from penstock.readers.arrays.memory import survey_arrays
from penstock.readers.arrays.survey import NumpySurvey
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Survey, Wanted, survey

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

    @abstractmethod
    def _look(self, columns: Sequence[str] | None) -> Survey:
        """A survey of these columns."""


@dataclass(eq=False)
class Files(Source):
    """Files of a format that a run file can read too."""

    reading: ReadingSection
    files: Sequence[DataFile]

    def _look(self, columns: Sequence[str] | None) -> Survey:
        return survey(self.reading, self.files, Wanted(columns))


class NumpyFiles(Files):
    """NumPy files, whose arrays may have any number of axes."""

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """As the headers say."""
        survey = self.survey()
        if not isinstance(survey, NumpySurvey) or not survey.layout.parts:
            return {}
        return _deep({name: array.shape for name, array in survey.layout.parts[0].arrays.items()})


@dataclass(eq=False)
class TFRecords(Source):
    """TFRecord files with the features that they are said to have."""

    files: Sequence[DataFile]
    schema: Mapping[str, Any]

    def _look(self, columns: Sequence[str] | None) -> Survey:
        # Imported where it is needed: its kernels take a while to load.
        from penstock.readers.tfrecord.survey import survey_tfrecord_with

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
