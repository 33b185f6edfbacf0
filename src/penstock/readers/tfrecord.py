"""TFRecord files of tf.train.Example -> record batches, without TensorFlow.

One pass over the headers of the records makes an index, and a look at records all over the files finds the columns
that are not declared. Then compiled loops (`tfrecord_kernels.py`) go over the bytes of some records and fill columns
(`tfrecord_columns.py`). Chunks, shares and positions are those of all indexed files.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.nearest import hint
from penstock.readers.columns import project
from penstock.readers.files import DataFile
from penstock.readers.order import Int64Array
from penstock.readers.record_index import CHUNK_BYTES, RecordIndex, TextFile, kept_index, sample_texts
from penstock.readers.scan import ReadRequest, ScannedFiles
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import ROW_COLUMN, ROW_FIELD, row_ids
from penstock.readers.text_decoder import ScannedText
from penstock.readers.tfrecord_columns import (
    DECLARE,
    KIND_NAMES,
    ExampleParser,
    UnusableRecord,
    record_ends,
    unusable,
)
from penstock.readers.tfrecord_kernels import (
    BYTES_KIND,
    FLOAT_KIND,
    INT64_KIND,
    TORN,
    find_records,
    list_features,
)
from penstock.readers.tfrecord_schema import ANY_LENGTH, Feature, parse_fields, parse_schema

_MAX_RECORD_BYTES = 2**31 - 1
"""What protobuf allows, and what the offsets of cells are counted in."""
_GZIP_MAGIC = b"\x1f\x8b"
_OFFSET_BYTES = 4
_FEATURES_AT_ONCE = 4096


def scan_tfrecord(reading: ReadingSection, files: Sequence[DataFile], wanted: ReadRequest) -> ScannedFiles:
    """Index the records; columns that `input_fields` does not declare are found from records."""
    scanned = _scan(files, wanted, parse_fields(reading.resolved_input_fields()))
    project(scanned.columns, wanted.columns, files[0].path)
    return scanned


def scan_tfrecord_with(
    files: Sequence[DataFile], wanted: ReadRequest, schema: Mapping[str, Any]
) -> ScannedFiles:
    """The same with a schema in Python, as `parse_schema` takes it: it names all columns there are."""
    features = parse_schema(schema)
    names = list(features) if wanted.columns is None else wanted.columns
    for name in names:
        if name not in features:
            raise DataError(f"the schema has no column '{name}'; {hint(name, features)}")
    return _scan(files, replace(wanted, columns=names), features)


def _scan(files: Sequence[DataFile], wanted: ReadRequest, declared: Mapping[str, Feature]) -> ScannedFiles:
    framing = TFRecordFraming()
    indexes = tuple(
        kept_index(file, framing.name, wanted.index_dir, partial(scan_file, file)) for file in files
    )
    sample = _look_at(files, sample_texts(files, indexes, framing))
    features = _columns(files, wanted, declared, sample)

    def refuse(bad: UnusableRecord, file_index: int, row: int, feature: str | None) -> None:
        # After a bad frame it is unknown where the next record begins: no quarantine helps.
        if wanted.quarantine is not None and not bad.is_frame:
            wanted.quarantine.put(row_ids(file_index, row, 1)[0].as_py(), bad.problem, column=feature)
            return
        offset = _offset_of(files[file_index], indexes[file_index], row)
        subject = "" if feature is None else f"feature '{feature}': "
        raise DataError(
            f"{files[file_index].path}: record {row} at byte {offset}: {subject}{bad.problem}"
        ) from bad

    parser = ExampleParser(features, refuse)
    return ScannedText(
        tuple(files), indexes, framing, parser, sample.row_bytes(features), sample.record_bytes
    )


def _columns(
    files: Sequence[DataFile], wanted: ReadRequest, declared: Mapping[str, Feature], sample: "_Sample"
) -> dict[str, Feature]:
    """The wanted columns, in the wanted order: declared, or as they were found; all of them in sorted order."""
    known = set(declared) | set(sample.found)
    if not known and sample.problem:
        raise DataError(f"{sample.problem}; no other record was found")
    names = sorted(known) if wanted.columns is None else wanted.columns
    for name in names:
        if name not in known and not sample.num_rows:
            raise DataError(
                f"{files[0].path}: there is no record in any file, so that the type of '{name}' is unknown; {DECLARE}"
            )
        if name not in known:
            raise DataError(f"{files[0].path}: there is no column '{name}'; {hint(name, known)}")
        if name == ROW_COLUMN:
            raise DataError.at(
                "this name is reserved for the origin of rows", file=files[0].path, column=name
            )
    return {name: declared[name] if name in declared else sample.found[name].feature(name) for name in names}


# Where records stand.


class TFRecordFraming:
    """The framing of TFRecord files; their bytes have been indexed, so that all headers were whole once."""

    name = "tfrecord"

    def whole_records(self, text: bytes | memoryview, is_all: bool) -> tuple[int, int]:
        """Where the last whole record ends, and how many there are up to there."""
        ends = self._ends(text)
        ends = ends[ends <= len(text)]
        last = int(ends[-1]) if ends.size else 0
        return len(text) if is_all else last, len(ends)

    def ends_inside(self, text: bytes | memoryview) -> bool:
        """Never: there are no quotes."""
        return False

    def starts(self, text: bytes | memoryview) -> Int64Array:
        """Where each record begins."""
        return np.insert(self._ends(text)[:-1], 0, 0)

    def _ends(self, text: bytes | memoryview) -> Int64Array:
        try:
            return record_ends(text)
        except UnusableRecord as bad:
            raise DataError(
                f"a file has changed while it was being read: a record has become bad: {bad.problem}"
            ) from bad


def scan_file(file: DataFile, checksum: int) -> RecordIndex:
    """Go from header to header through a file.

    A chunk has as many whole records as fit; a record that does not fit is one of its own, and is not read.
    """
    chunks: list[tuple[int, int, int]] = []
    offset = row = 0
    with closing(TextFile(file)) as source:
        while content := source.read(offset, CHUNK_BYTES):
            try:
                num_records, num_bytes = _next_chunk(source, offset, content)
            except UnusableRecord as bad:
                if row + bad.row == 0 and source.read(0, len(_GZIP_MAGIC)) == _GZIP_MAGIC:
                    problem = "is compressed with gzip; give it a name that ends with .gz"
                    raise DataError(f"{file.path}: {problem}") from bad
                at = _end_of_records(source, offset, bad.row)
                raise DataError(f"{file.path}: record {row + bad.row} at byte {at}: {bad.problem}") from bad
            chunks.append((offset, num_bytes, num_records))
            offset, row = offset + num_bytes, row + num_records
    return RecordIndex.of(checksum, chunks)


def _next_chunk(source: TextFile, offset: int, content: bytes) -> tuple[int, int]:
    """How many records make the next chunk, and their bytes."""
    ends = record_ends(content)
    num_whole = int(np.searchsorted(ends, len(content), side="right"))
    is_end_of_file = len(content) < CHUNK_BYTES
    if num_whole and (not is_end_of_file or ends[num_whole - 1] == len(content)):
        return num_whole, int(ends[num_whole - 1])
    if is_end_of_file or not source.read(offset + int(ends[0]) - 1, 1):
        raise unusable(np.array([TORN, num_whole, -1, 0]))
    if ends[0] > _MAX_RECORD_BYTES:
        raise UnusableRecord(0, f"has {int(ends[0]):,} bytes; protobuf allows 2 GiB", is_frame=True)
    return 1, int(ends[0])


def _end_of_records(source: TextFile, offset: int, num_records: int) -> int:
    """Where so many records end, all of one chunk, the first of which begins at an offset."""
    ends = np.zeros(num_records + 1, np.int64)
    content = np.frombuffer(source.read(offset, CHUNK_BYTES), np.uint8)
    find_records(content, ends[1:], np.zeros(4, np.int64))
    return offset + int(ends[-1])


def _offset_of(file: DataFile, index: RecordIndex, row: int) -> int:
    """The byte at which a record begins; for messages only, since it reads the file."""
    ends = np.cumsum(index.num_records)
    chunk = int(np.searchsorted(ends, row, side="right"))
    with closing(TextFile(file)) as source:
        return _end_of_records(
            source, int(index.offsets[chunk]), row - int(ends[chunk] - index.num_records[chunk])
        )


# Which features records have.


@dataclass(slots=True)
class _Found:
    """What the looked at records have under one name."""

    files: dict[int, str] = field(default_factory=dict)
    """For each kind of list the first file that has it."""
    min_values: int = 2**62
    max_values: int = 0
    num_values: int = 0
    num_bytes: int = 0
    is_utf8: bool = True

    def feature(self, name: str) -> Feature:
        """One value if all records that have it have one, else a list of any length."""
        if len(self.files) > 1:
            (kind, file), (other_kind, other_file) = list(self.files.items())[:2]
            raise DataError(
                f"feature '{name}' holds {KIND_NAMES[kind]} in {file} but {KIND_NAMES[other_kind]} in "
                f"{other_file}; write all records with one type"
            )
        types = {
            BYTES_KIND: "string" if self.is_utf8 else "bytes",
            FLOAT_KIND: "float32",
            INT64_KIND: "int64",
        }
        is_one = self.min_values == self.max_values == 1
        return Feature(types[next(iter(self.files))], None if is_one else ANY_LENGTH)


@dataclass(slots=True)
class _Sample:
    """What the looked at records have."""

    found: dict[str, _Found] = field(default_factory=dict)
    num_rows: int = 0
    record_bytes: int = 1
    """Of a record as it stands in the files: the largest mean of a sampled part."""
    problem: str | None = None
    """What is wrong with one of them."""

    def row_bytes(self, features: Mapping[str, Feature]) -> int:
        """Bytes of a row in memory, with its origin."""
        num_bytes = 0
        for name, feature in features.items():
            found = self.found.get(name, _Found())
            has_any_length = feature.length == ANY_LENGTH
            num_values = found.num_values if has_any_length else self.num_rows * int(feature.length or 1)
            if feature.kind == BYTES_KIND:
                num_bytes += found.num_bytes + num_values * _OFFSET_BYTES
            else:
                num_bytes += num_values * -(-feature.value_type.bit_width // 8)
            num_bytes += self.num_rows * _OFFSET_BYTES if has_any_length else 0
        return ROW_FIELD.type.bit_width // 8 + -(-num_bytes // max(1, self.num_rows))


def _look_at(files: Sequence[DataFile], texts: Iterable[tuple[int, bytes]]) -> _Sample:
    """The features of some records, given with the index of their file.

    Records that cannot be used are passed over: reading reports where they are.
    """
    sample = _Sample()
    for file_index, text in texts:
        path = files[file_index].path
        data, num_rows = np.frombuffer(text, np.uint8), len(record_ends(text))
        table, failure = np.empty((_FEATURES_AT_ONCE, 5), np.int64), np.zeros(4, np.int64)
        num_features = list_features(data, num_rows, table, failure)
        if num_features > len(table):
            table = np.empty((num_features, 5), np.int64)
            list_features(data, num_rows, table, failure)
        if failure[0]:
            sample.problem = f"{path}: {unusable(failure).problem}"
        known: dict[bytes, _Found] = {}
        for begin, end, kind, num_values, num_bytes in table[:num_features].tolist():
            key = text[begin:end]
            if key not in known:
                known[key] = sample.found.setdefault(_name(key, path), _Found())
            found = known[key]
            found.files.setdefault(kind, path)
            found.min_values = min(found.min_values, num_values)
            found.max_values = max(found.max_values, num_values)
            found.num_values += num_values
            found.num_bytes += num_bytes
        sample.num_rows += num_rows
        sample.record_bytes = max(sample.record_bytes, len(text) // max(1, num_rows))
        _check_utf8(sample, text, num_rows)
    return sample


def _name(key: bytes, path: str) -> str:
    try:
        return key.decode()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: has a feature whose name is not UTF-8: {key!r}") from error


def _check_utf8(sample: _Sample, text: bytes, num_rows: int) -> None:
    """Note which features hold bytes that are not UTF-8."""
    names = [name for name, found in sample.found.items() if found.is_utf8 and [*found.files] == [BYTES_KIND]]
    parser = ExampleParser({name: Feature("bytes", ANY_LENGTH) for name in names}, lambda *_: None)
    columns: Any = parser.parse(memoryview(text), 0, 0, num_rows).columns
    for name, column in zip(names, columns, strict=True):
        try:
            column.flatten().cast(pa.string())
        except pa.ArrowInvalid:
            sample.found[name].is_utf8 = False
