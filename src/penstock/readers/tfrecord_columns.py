"""Records of tf.train.Example -> Arrow columns: what these hold, how they are filled, and why a record cannot be used.

`ExampleParser` locates the features of all rows (their cells), counts their values, allocates, and fills.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, Problem, hint
from penstock.readers import tfrecord_kernels as kernels
from penstock.readers.tfrecord_kernels import BYTES_KIND, FLOAT_KIND, INT64_KIND

ANY_LENGTH: Literal["any"] = "any"
KIND_NAMES = {BYTES_KIND: "bytes", FLOAT_KIND: "floats", INT64_KIND: "int64s"}
DECLARE = "declare its type in a schema, or in the input_fields of a run file"
_AGAIN = "copy or write the file again"
_SHOWN = 60
_REMEMBERED_KEYS = 4096
_BITS: dict[int, Any] = {FLOAT_KIND: np.uint32, INT64_KIND: np.int64}
_NUMBERS: dict[int, Any] = {FLOAT_KIND: pa.float32(), INT64_KIND: pa.int64()}
_INTEGERS = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_KINDS = {
    **dict.fromkeys(_INTEGERS, INT64_KIND),
    **dict.fromkeys(("float32", "float64"), FLOAT_KIND),
    **dict.fromkeys(("string", "bytes"), BYTES_KIND),
}
"""Which list of a tf.train.Feature holds a type."""

_LIST_BYTES_PER_TEXT_BYTE = {BYTES_KIND: 6, FLOAT_KIND: 3, INT64_KIND: 16}
"""What the values of lists take at most, and once more while they are cast: a packed int64 may stand in one byte,
and an empty string in two."""
_STRING_BYTES_PER_TEXT_BYTE = 2
"""Of columns with one string in each row: once more while rows without one are filled in."""
_CELL_BYTES, _SCALAR_BYTES = 8, 2 * 9
_COUNT_BYTES = 24  # the lengths, sizes and offsets of a row of a column of lists or strings


@dataclass(frozen=True)
class RecordFeature:
    """What one column holds.

    >>> RecordFeature("float32", 3).arrow_type
    FixedSizeListType(fixed_size_list<item: float>[3])
    """

    type: str  # bool, int8 to int64, uint8 to uint32, float32, float64, string (UTF-8), or bytes
    length: int | Literal["any"] | None = None
    """None: one value; a number: a list of so many; "any": a list of any length."""
    default: Any = None
    """For rows that do not have it; None: null, or where any length will do, an empty list."""

    def __post_init__(self) -> None:
        if self.type not in _KINDS:
            raise ValueError(f"the type '{self.type}' is unknown; {hint(self.type, _KINDS)}")
        length: Any = self.length
        if length not in (None, ANY_LENGTH) and not (isinstance(length, int) and length > 0):
            raise ValueError(f'the length {self.length!r} is neither a number above 0 nor "{ANY_LENGTH}"')
        if self.default is not None:
            try:
                pa.scalar(self.default_value, self.arrow_type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
                raise ValueError(f"the default {self.default!r} is no {self.arrow_type}") from error

    @property
    def kind(self) -> int:
        return _KINDS[self.type]

    @property
    def value_type(self) -> Any:
        alias: Any = "binary" if self.type == "bytes" else self.type
        return pa.type_for_alias(alias)

    @cached_property
    def arrow_type(self) -> Any:
        if self.length is None:
            return self.value_type
        return pa.list_(self.value_type, -1 if self.length == ANY_LENGTH else self.length)

    @property
    def default_value(self) -> Any:
        """The default for a row: one value stands for as many as a list of fixed length has."""
        is_one_of_many = isinstance(self.length, int) and not isinstance(self.default, list | tuple)
        return [self.default] * self.length if is_one_of_many else self.default  # type: ignore[operator]


def parse_schema(schema: Mapping[str, Any]) -> dict[str, RecordFeature]:
    """The columns of a schema in Python; all problems at once.

    "int64" is one value, ("float32", 10) a list of ten, ["int64"] a list of any length, and ("int64", (), 0) one
    value that is 0 where it is missing.

    >>> parse_schema({"label": "int64", "features": ("float32", 10)})["features"]
    RecordFeature(type='float32', length=10, default=None)
    """
    features: dict[str, RecordFeature] = {}
    problems: list[Problem] = []
    for name, declared in schema.items():
        try:
            features[name] = _parse_feature(declared)
        except ValueError as error:
            problems.append(Problem(f"schema['{name}']", str(error)))
    if problems:
        raise ConfigError(problems)
    return features


def _parse_feature(declared: Any) -> RecordFeature:
    match declared:
        case RecordFeature():
            return declared
        case str(type_name):
            return RecordFeature(type_name)
        case [str(type_name)] if isinstance(declared, list):
            return RecordFeature(type_name, ANY_LENGTH)
        case (str(type_name), length, *default) if isinstance(declared, tuple) and len(default) <= 1:
            if isinstance(length, tuple | list):  # a shape, of no number or of one
                if len(length) > 1:
                    raise ValueError(
                        f"the shape {length!r} has several dimensions; give the number of values, and reshape"
                    )
                length = length[0] if length else None
            return RecordFeature(type_name, length, *default)
    raise ValueError(
        f'{declared!r} is not a type; write "int64", ("float32", 10), ["int64"] or ("int64", (), 0) with a default'
    )


# Records.


@dataclass(eq=False)
class UnusableRecord(Exception):
    """A record, or one feature of it, that cannot be used; rows are counted from the start of some bytes."""

    row: int
    problem: str
    column: int = -1  # -1: the whole record
    is_frame: bool = False  # whether it is unknown where the next record begins


Refuse = Callable[[UnusableRecord, str | None], None]
"""What happens to a record that cannot be used: takes it with the feature, None: all of it, and raises or not."""


def unusable(failure: NDArray[np.int64], kinds: NDArray[np.int64] | None = None) -> UnusableRecord:
    """What a kernel described; `kinds` are those that the columns must have."""
    reason, row, column, number = failure.tolist()
    if reason == kernels.OTHER_KIND and kinds is not None:
        found, expected = KIND_NAMES[number], KIND_NAMES[int(kinds[column])]
        problem = f"holds {found}, not {expected} as declared or as in other records; {DECLARE}"
    elif reason == kernels.NOT_ONE_VALUE:
        problem = f"holds {number} values, not one as declared or as in other records; {DECLARE}"
    else:
        problem = {
            kernels.LENGTH_CHECK: f"its length fails its checksum, the file is damaged; {_AGAIN}",
            kernels.TORN: f"the file ends inside it, it was cut short; {_AGAIN}",
            kernels.DATA_CHECK: f"its data fails its checksum, the file is damaged; {_AGAIN}",
            kernels.IN_PARTS: f"a feature stands in parts, as no protobuf library writes it; {_AGAIN}",
        }.get(reason, "is not a tf.train.Example; no other message can be read")
    return UnusableRecord(row, problem, column, is_frame=reason in (kernels.LENGTH_CHECK, kernels.TORN))


def record_ends(content: bytes | memoryview, max_records: int | None = None) -> NDArray[np.int64]:
    """The ends of the records that begin in the bytes; the last may lie outside of them, a header be cut off."""
    if max_records is None:
        max_records = len(content) // (kernels.HEADER_BYTES + kernels.FOOTER_BYTES) + 1
    ends, failure = np.empty(max_records, np.int64), np.zeros(4, np.int64)
    num_records = kernels.find_records(np.frombuffer(content, np.uint8), ends, failure)
    if num_records < 0:
        raise unusable(failure)
    return ends[:num_records]


@dataclass(frozen=True)
class ExampleParser:
    features: dict[str, RecordFeature]

    @cached_property
    def columns(self) -> pa.Schema:
        return pa.schema([(name, feature.arrow_type) for name, feature in self.features.items()])

    @property
    def costs(self) -> tuple[int, int]:
        """The records, their cells, and the columns."""
        per_record, per_text_byte = 0, 1
        features = self.features.values()
        for feature in features:
            if feature.length is None and feature.kind != BYTES_KIND:
                per_record += _CELL_BYTES + _SCALAR_BYTES
            else:
                length = feature.length if isinstance(feature.length, int) else 0
                per_record += _CELL_BYTES + _COUNT_BYTES + 2 * 8 * length
        for kind in {feature.kind for feature in features if feature.length is not None}:
            per_text_byte += _LIST_BYTES_PER_TEXT_BYTE[kind]
        if any(feature.kind == BYTES_KIND and feature.length is None for feature in features):
            per_text_byte += _STRING_BYTES_PER_TEXT_BYTE
        return per_text_byte, per_record

    @cached_property
    def _kinds(self) -> NDArray[np.int64]:
        return np.array([feature.kind for feature in self.features.values()], np.int64)

    @cached_property
    def _keys(self) -> tuple[Any, Any, Any]:
        """The names of the columns: their bytes, where each begins, and a hash table."""
        names = [name.encode() for name in self.features]
        key_data = np.frombuffer(b"".join(names), np.uint8)
        key_offsets = np.cumsum([0, *map(len, names)])
        slots = np.full(1 << (2 * len(names)).bit_length(), -1)
        kernels.fill_slots(key_data, key_offsets, slots)
        return key_data, key_offsets, slots

    def parse(self, text: memoryview, num_records: int, refuse: Refuse) -> pa.RecordBatch:
        """So many records; what `refuse` does not raise about is null."""
        data, cells = np.frombuffer(text, np.uint8), self.locate(text, num_records, refuse)
        while True:
            try:
                return pa.RecordBatch.from_arrays(self._take_columns(data, cells), schema=self.columns)
            except UnusableRecord as bad:
                refuse(bad, list(self.features)[bad.column])
                cells[bad.row, bad.column, 0] = kernels.MISSING

    def locate(
        self, text: bytes | memoryview, num_records: int, refuse: Refuse, max_found: int = 0
    ) -> NDArray[Any]:
        """The cells of all rows; with `max_found`, instead so many keys that are no column, and their kinds."""
        data = np.frombuffer(text, np.uint8)
        cells = np.empty((num_records, len(self.features), 2), np.int32)
        found = np.full((max_found, 3), -1)
        num_found = 0
        remembered, failure = np.full((_REMEMBERED_KEYS, 3), -1), np.zeros(4, np.int64)
        row = start = 0
        while True:
            tables = (remembered, cells[row:], found[num_found:], failure)
            if kernels.locate(data, start, self._keys, self._kinds, *tables) >= 0:
                break
            failure[1] += row
            bad = unusable(failure, self._kinds)
            refuse(bad, None if bad.column < 0 else list(self.features)[bad.column])
            cells[bad.row, :, 0] = kernels.MISSING
            row, start = bad.row + 1, int(record_ends(text, bad.row + 1)[bad.row])
            num_found = int(np.count_nonzero(found[:, 0] >= 0))
        return cells if max_found == 0 else found[found[:, 0] >= 0]

    def _take_columns(self, data: Any, cells: Any) -> list[Any]:
        """The columns of all rows; raises UnusableRecord for the first value that does not fit."""
        columns: dict[int, Any] = {}
        features = list(self.features.values())
        for kind in _NUMBERS:
            group = [i for i, found in enumerate(features) if found.kind == kind and found.length is None]
            if group:
                columns.update(zip(group, _scalars(data, cells, group, kind), strict=True))
        for i, feature in enumerate(features):
            native = columns[i] if i in columns else lists_or_strings(data, cells, i, feature)
            columns[i] = _finished(native, i, feature)
        return [columns[i] for i in range(len(features))]


def _scalars(data: Any, cells: Any, group: list[int], kind: int) -> list[Any]:
    """All columns of one number per row, in one pass over the rows."""
    num_rows = len(cells)
    values = np.empty((len(group), num_rows), _BITS[kind])
    present = np.empty((len(group), num_rows), np.bool_)
    failure = np.zeros(4, np.int64)
    if kernels.take_scalars(data, cells, np.array(group), kind, values, present, failure) < 0:
        raise unusable(failure)
    columns = []
    for i, num_null in enumerate((num_rows - np.count_nonzero(present, axis=1)).tolist()):
        bitmap = _buffer(np.packbits(present[i], bitorder="little")) if num_null else None
        buffers = [bitmap, _buffer(values[i])]
        columns.append(pa.Array.from_buffers(_NUMBERS[kind], num_rows, buffers, num_null))
    return columns


def count_values(data: Any, cells: Any, column: int, kind: int) -> tuple[Any, Any]:
    """The number of values of each row of a column, -1 where the feature is missing; of bytes also how many."""
    lengths, sizes = np.empty(len(cells), np.int32), np.empty(len(cells), np.int64)
    failure = np.zeros(4, np.int64)
    if kernels.count_values(data, cells, column, kind, lengths, sizes, failure) < 0:
        raise unusable(failure)
    return lengths, sizes


def lists_or_strings(data: Any, cells: Any, column: int, feature: RecordFeature) -> Any:
    """A column of values that are first counted; missing lists of any length are empty."""
    lengths, sizes = count_values(data, cells, column, feature.kind)
    failure = np.zeros(4, np.int64)
    present = lengths > (-1 if feature.length == ANY_LENGTH else 0)
    np.maximum(lengths, 0, out=lengths)
    if feature.length != ANY_LENGTH:
        wrong = np.flatnonzero(present & (lengths != (feature.length or 1)))
        if wrong.size:
            expected = "one" if feature.length is None else feature.length
            found = f"holds {lengths[wrong[0]]} values, not {expected} as declared or as in other records"
            raise UnusableRecord(int(wrong[0]), f"{found}; {DECLARE}", column)
    num_values = int(lengths.sum())
    if feature.kind == BYTES_KIND:
        ends, content = np.zeros(num_values + 1, np.int32), np.empty(int(sizes.sum()), np.uint8)
        kernels.take_bytes(data, cells, column, ends[1:], content)
        items: Any = pa.Array.from_buffers(pa.binary(), num_values, [None, _buffer(ends), _buffer(content)])
    else:
        values = np.empty(num_values, _BITS[feature.kind])
        if kernels.take_numbers(data, cells, column, feature.kind, values, failure) < 0:
            raise unusable(failure)
        items = pa.Array.from_buffers(_NUMBERS[feature.kind], num_values, [None, _buffer(values)])
    is_whole = bool(present.all())
    mask = None if is_whole else pa.array(~present)
    if feature.length == ANY_LENGTH:
        offsets: Any = np.zeros(len(cells) + 1, np.int32)
        np.cumsum(lengths, out=offsets[1:])
        return pa.ListArray.from_arrays(
            pa.array(offsets), items, mask=None if feature.default is None else mask
        )
    if not is_whole:
        has_value = np.repeat(present, feature.length or 1)
        items = items.take(pa.array(np.cumsum(has_value) - 1, mask=~has_value))
    if feature.length is None:
        return items
    return pa.FixedSizeListArray.from_arrays(items, feature.length, mask=mask)


def _buffer(values: Any) -> pa.Buffer:
    """The memory of an array; the stubs do not know that an array is a buffer."""
    return pa.py_buffer(values)


def _finished(native: Any, column: int, feature: RecordFeature) -> Any:
    """The column in the type that it is given out as, with its default."""
    try:
        values = native if native.type == feature.arrow_type else native.cast(feature.arrow_type)
    except pa.ArrowInvalid as error:
        first, end = 0, len(native)
        while end - first > 1:  # the first row that cannot be cast
            middle = (first + end) // 2
            try:
                native.take(pa.array(range(first, middle))).cast(feature.arrow_type)
                first = middle
            except pa.ArrowInvalid:
                end = middle
        value = repr(native[first].as_py())
        shown = value if len(value) <= _SHOWN else f"{value[:_SHOWN]}..."
        if feature.kind == BYTES_KIND:
            problem = f"holds bytes that are not UTF-8 ({shown}); declare it as bytes, or write it as UTF-8"
        else:
            problem = f"holds {shown}, which {feature.type} cannot hold; declare a wider type"
        raise UnusableRecord(first, problem, column) from error
    if feature.default is not None and values.null_count:
        return pc.fill_null(values, pa.scalar(feature.default_value, feature.arrow_type))
    return values
