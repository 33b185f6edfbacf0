"""The features that records have, found from some of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.origin import ROW_FIELD
from penstock.readers.tfrecord.catalogue import (
    KEY_BEGIN,
    KEY_END,
    KINDS,
    LEAST,
    MOST,
    NUM_BYTES,
    NUM_VALUES,
    catalogue,
)
from penstock.readers.tfrecord.features import ANY_LENGTH, Feature
from penstock.readers.tfrecord.framing import record_ends
from penstock.readers.tfrecord.parser import ExampleParser
from penstock.readers.tfrecord.problems import KIND_NAMES, of_failure
from penstock.readers.tfrecord.refusal import pass_over
from penstock.readers.tfrecord.wire import BYTES_KIND, FLOAT_KIND, INT64_KIND

_MOST_FEATURES = 1 << 16
_NUM_SLOTS = 2 * _MOST_FEATURES
_OFFSET_BYTES = 4


@dataclass(slots=True)
class Found:
    """What the looked at records have under one name."""

    files: dict[int, str] = field(default_factory=dict)
    """For each kind of list the first file that has it."""
    least: int = 2**62
    most: int = 0
    num_values: int = 0
    num_bytes: int = 0
    is_text: bool = True

    def feature(self, name: str) -> Feature:
        """One value if all records that have it have one, else a list of any length."""
        if len(self.files) > 1:
            (kind, file), (other_kind, other_file) = list(self.files.items())[:2]
            raise DataError(
                f"feature '{name}' holds {KIND_NAMES[kind]} in {file} but {KIND_NAMES[other_kind]} in "
                f"{other_file}; write all records with one type"
            )
        text_type = "string" if self.is_text else "bytes"
        type_name = {BYTES_KIND: text_type, FLOAT_KIND: "float32", INT64_KIND: "int64"}[
            next(iter(self.files))
        ]
        return Feature(type_name, None if self.least == self.most == 1 else ANY_LENGTH)


@dataclass(slots=True)
class Sample:
    """What the looked at records have."""

    found: dict[str, Found] = field(default_factory=dict)
    num_rows: int = 0
    record_bytes: int = 1
    """Of a record as it stands in the files: the largest mean of a place."""
    problem: str | None = None
    """What is wrong with one of them."""

    def row_bytes(self, features: Mapping[str, Feature]) -> int:
        """Bytes of a row in memory, with its origin."""
        num_bytes = sum(
            self._column_bytes(self.found.get(name, Found()), features[name]) for name in features
        )
        return ROW_FIELD.type.bit_width // 8 + -(-num_bytes // max(1, self.num_rows))

    def _column_bytes(self, found: Found, feature: Feature) -> int:
        num_values = (
            found.num_values if feature.length == ANY_LENGTH else self.num_rows * (feature.length or 1)
        )
        if feature.kind == BYTES_KIND:
            values_bytes = found.num_bytes + num_values * _OFFSET_BYTES
        else:
            values_bytes = num_values * -(-feature.value_type.bit_width // 8)
        return values_bytes + (self.num_rows * _OFFSET_BYTES if feature.length == ANY_LENGTH else 0)


def look_at(files: Sequence[DataFile], texts: Iterable[tuple[int, bytes]]) -> Sample:
    """The features of some records, given with the index of their file.

    Records that cannot be used are passed over: reading tells where they are.
    """
    sample = Sample()
    for file_index, text in texts:
        _add(sample, files[file_index].path, text)
    return sample


def _add(sample: Sample, path: str, text: bytes) -> None:
    num_rows = len(record_ends(text))
    slots, found = np.full(_NUM_SLOTS, -1), np.zeros((_MOST_FEATURES, 7), np.int64)
    failure = np.zeros(4, np.int64)
    num_features = catalogue(np.frombuffer(text, np.uint8), num_rows, slots, found, failure)
    if failure[0]:
        sample.problem = f"{path}: {of_failure(failure.tolist(), []).problem}"
    for row in found[:num_features].tolist():
        _add_feature(
            sample.found.setdefault(_name(text[row[KEY_BEGIN] : row[KEY_END]], path), Found()), row, path
        )
    sample.num_rows += num_rows
    sample.record_bytes = max(sample.record_bytes, len(text) // max(1, num_rows))
    _check_texts(sample, text, num_rows)


def _name(key: bytes, path: str) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: has a feature whose name is not UTF-8: {key!r}") from error


def _add_feature(found: Found, row: Sequence[int], path: str) -> None:
    for kind in KIND_NAMES:
        if row[KINDS] & (1 << kind):
            found.files.setdefault(kind, path)
    found.least, found.most = min(found.least, row[LEAST]), max(found.most, row[MOST])
    found.num_values += row[NUM_VALUES]
    found.num_bytes += row[NUM_BYTES]


def _check_texts(sample: Sample, text: bytes, num_rows: int) -> None:
    """Notes which features hold bytes that are not UTF-8."""
    names = [
        name for name, found in sample.found.items() if found.is_text and list(found.files) == [BYTES_KIND]
    ]
    parser = ExampleParser({name: Feature("bytes", ANY_LENGTH) for name in names}, pass_over)
    columns: Any = parser.parse(memoryview(text), 0, 0, num_rows).columns
    for name, column in zip(names, columns, strict=True):
        sample.found[name].is_text = _is_text(column.flatten())


def _is_text(values: Any) -> bool:
    try:
        values.cast(pa.string())
    except pa.ArrowInvalid:
        return False
    return True
