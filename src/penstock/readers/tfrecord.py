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

from penstock.config.errors import DataError, hint
from penstock.readers import tfrecord_kernels as kernels
from penstock.readers.columns import declared_types, project
from penstock.readers.files import DataFile
from penstock.readers.indexed_files import (
    CHUNK_BYTES,
    Chunks,
    Framing,
    ScannedRecords,
    index_records,
    sample_texts,
)
from penstock.readers.order import Int64Array
from penstock.readers.scan import ReadRequest, ScannedFiles
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import ROW_COLUMN, ROW_FIELD
from penstock.readers.text_file import TextFile, as_text_files
from penstock.readers.tfrecord_columns import (
    ANY_LENGTH,
    DECLARE,
    KIND_NAMES,
    ExampleParser,
    RecordFeature,
    UnusableRecord,
    count_values,
    lists_or_strings,
    parse_schema,
    record_ends,
    unusable,
)
from penstock.readers.tfrecord_kernels import BYTES_KIND, FLOAT_KIND, INT64_KIND

_MAX_RECORD_BYTES = 2**31 - 1  # what protobuf allows, and what the offsets of cells are counted in
_OFFSET_BYTES = 4
_MAX_KEYS = 65_536  # that a sampled part of a file may have
_TYPES = {BYTES_KIND: "bytes", FLOAT_KIND: "float32", INT64_KIND: "int64"}


@dataclass(kw_only=True, eq=False)
class ScannedTFRecords(ScannedRecords):
    parser: ExampleParser

    def parse(self, text: memoryview, file_index: int, first_row: int, num_records: int) -> pa.RecordBatch:
        return self.parser.parse(text, num_records, partial(self._refuse_record, file_index, first_row))

    def _refuse_record(
        self, file_index: int, first_row: int, bad: UnusableRecord, feature: str | None
    ) -> None:
        row = first_row + bad.row
        # After a bad frame it is unknown where the next record begins: no quarantine helps.
        if self.quarantine is not None and not bad.is_frame:
            self.refuse(file_index, row, bad.problem, column=feature)
            return
        file, index = self.files[file_index], self.indexes[file_index]
        ends = np.cumsum(index.num_records)
        chunk = int(np.searchsorted(ends, row, side="right"))
        offset, num_before = int(index.offsets[chunk]), row - int(ends[chunk] - index.num_records[chunk])
        with closing(TextFile(file)) as source:
            offset += _bytes_before(source.read(offset, int(index.num_bytes[chunk])), num_before)
        subject = "" if feature is None else f"feature '{feature}': "
        raise DataError(f"{file.path}: record {row} at byte {offset}: {subject}{bad.problem}") from bad


def scan_tfrecord(reading: ReadingSection, files: Sequence[DataFile], wanted: ReadRequest) -> ScannedFiles:
    """Index the records; columns that `input_fields` does not declare are found from records."""
    declared: dict[str, RecordFeature] = {}
    for name, value_type in declared_types(reading).items():
        length = ANY_LENGTH if pa.types.is_list(value_type) else None
        item_type = value_type.value_type if length else value_type
        type_name = {"float": "float32", "double": "float64"}.get(str(item_type), str(item_type))
        # Maps, and lists of lists, stay strings: the features split them.
        declared[name] = (
            RecordFeature("string") if pa.types.is_nested(item_type) else RecordFeature(type_name, length)
        )
    scanned = _scan(files, wanted, declared)
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


def _scan(
    files: Sequence[DataFile], wanted: ReadRequest, declared: Mapping[str, RecordFeature]
) -> ScannedFiles:
    framing = TFRecordFraming()
    files = as_text_files(files)
    indexes = tuple(
        index_records(file, framing.name, wanted.index_dir, partial(scan_file, file)) for file in files
    )
    sample = _look_at(files, sample_texts(files, indexes, framing))
    # The wanted columns in the wanted order: declared, or as they were found; all of them in sorted order.
    known = set(declared) | set(sample.found)
    if not known and sample.problem:
        raise DataError(f"{sample.problem}; no other record was found")
    if sample.bad_name and not (wanted.columns and known.issuperset(wanted.columns)):
        raise DataError(f"{sample.bad_name}; name the columns to read, or write it again")
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
    features = {
        name: declared[name] if name in declared else sample.found[name].feature(name) for name in names
    }
    parser = ExampleParser(features)
    return ScannedTFRecords(
        files=tuple(files),
        columns=parser.columns,
        indexes=indexes,
        framing=framing,
        sampled_row_bytes=sample.row_bytes(features),
        text_row_bytes=sample.record_bytes,
        costs=parser.costs,
        quarantine=wanted.quarantine,
        parser=parser,
    )


# Where records stand.


class TFRecordFraming(Framing):
    """The framing of TFRecord files; their bytes have been indexed, so that all headers were whole once."""

    name = "tfrecord"

    def whole_records(self, text: bytes, is_all: bool) -> tuple[int, int]:
        ends = self._ends(text)
        ends = ends[ends <= len(text)]
        last = int(ends[-1]) if ends.size else 0
        return len(text) if is_all else last, len(ends)

    def starts(self, text: bytes | memoryview) -> Int64Array:
        return np.insert(self._ends(text)[:-1], 0, 0)

    def _ends(self, text: bytes | memoryview) -> Int64Array:
        try:
            return record_ends(text)
        except UnusableRecord as bad:
            raise DataError(
                f"a file has changed while it was being read: a record has become bad: {bad.problem}"
            ) from bad


def scan_file(file: DataFile) -> Chunks:
    """A chunk has as many whole records as fit; a record that does not fit is one of its own, and is not read."""
    chunks: Chunks = []
    offset = row = 0
    with closing(TextFile(file)) as source:
        while content := source.read(offset, CHUNK_BYTES):
            is_end_of_file = len(content) < CHUNK_BYTES
            try:
                ends = record_ends(content)
                num_records = int(np.searchsorted(ends, len(content), side="right"))
                num_bytes = int(ends[max(0, num_records - 1)]) if ends.size else 0
                if num_records == 0 or (is_end_of_file and num_bytes < len(content)):
                    if is_end_of_file or not source.read(offset + num_bytes - 1, 1):
                        raise unusable(np.array([kernels.TORN, num_records, -1, 0]))
                    if num_bytes > _MAX_RECORD_BYTES:
                        raise UnusableRecord(
                            0, f"has {num_bytes:,} bytes; protobuf allows 2 GiB", is_frame=True
                        )
                    num_records = 1
            except UnusableRecord as bad:
                at = offset + _bytes_before(content, bad.row)
                raise DataError(f"{file.path}: record {row + bad.row} at byte {at}: {bad.problem}") from bad
            chunks.append((offset, num_bytes, num_records))
            offset, row = offset + num_bytes, row + num_records
    return chunks


def _bytes_before(content: bytes, row: int) -> int:
    return int(record_ends(content, row)[-1]) if row else 0


# Which features records have.


@dataclass(slots=True)
class _Found:
    files: dict[int, str] = field(default_factory=dict)
    """For each kind of list the first file that has it."""
    is_one: bool = True  # whether all records that have it have one value
    num_values: int = 0
    num_bytes: int = 0
    is_utf8: bool = True

    def add(self, data: Any, cells: Any, column: int, kind: int) -> None:
        """Look at the lists of some records; raises UnusableRecord for the first that is no list."""
        lengths, sizes = count_values(data, cells, column, kind)
        lengths = lengths[lengths >= 0]
        if kind == BYTES_KIND and self.is_utf8:
            values = lists_or_strings(data, cells, column, RecordFeature("bytes", ANY_LENGTH))
            try:
                values.flatten().cast(pa.string())
            except pa.ArrowInvalid:
                self.is_utf8 = False
        self.is_one &= bool((lengths == 1).all())
        self.num_values += int(lengths.sum())
        self.num_bytes += int(sizes.sum())

    def feature(self, name: str) -> RecordFeature:
        if len(self.files) > 1:
            (kind, file), (other_kind, other_file) = list(self.files.items())[:2]
            raise DataError(
                f"feature '{name}' holds {KIND_NAMES[kind]} in {file} but {KIND_NAMES[other_kind]} in "
                f"{other_file}; write all records with one type"
            )
        found_type = _TYPES[next(iter(self.files))]
        is_string = found_type == "bytes" and self.is_utf8
        return RecordFeature("string" if is_string else found_type, None if self.is_one else ANY_LENGTH)


@dataclass(slots=True)
class _Sample:
    found: dict[str, _Found] = field(default_factory=dict)
    num_rows: int = 0
    record_bytes: int = 1  # of a record as it stands in the files: the largest mean of a sampled part
    problem: str | None = None
    bad_name: str | None = None  # of a feature that nobody can ask for: a problem where all features are read

    def row_bytes(self, features: Mapping[str, RecordFeature]) -> int:
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
    """The features of some records. Those that cannot be used are passed over: reading reports where they are."""
    sample = _Sample()

    for file_index, text in texts:
        path, num_rows = files[file_index].path, len(record_ends(text))

        def pass_over(bad: UnusableRecord, _: str | None, path: str = path) -> None:
            sample.problem = f"{path}: {bad.problem}"

        features: dict[str, RecordFeature] = {}
        keys = ExampleParser({}).locate(text, num_rows, pass_over, _MAX_KEYS)
        for begin, end, kind in keys.tolist():
            try:
                name = text[begin:end].decode()
            except UnicodeDecodeError:
                sample.bad_name = f"{path}: has a feature whose name is not UTF-8: {text[begin:end]!r}"
                continue
            features.setdefault(name, RecordFeature(_TYPES[kind], ANY_LENGTH))
            sample.found.setdefault(name, _Found()).files.setdefault(kind, path)
        cells = ExampleParser(features).locate(text, num_rows, pass_over)
        for i, (name, feature) in enumerate(features.items()):
            while True:
                try:
                    sample.found[name].add(np.frombuffer(text, np.uint8), cells, i, feature.kind)
                    break
                except UnusableRecord as bad:
                    pass_over(bad, name)
                    cells[bad.row, i, 0] = kernels.MISSING
        sample.num_rows += num_rows
        sample.record_bytes = max(sample.record_bytes, len(text) // max(1, num_rows))
    return sample
