"""What the columns of TFRecord files hold: declared by a schema in Python, by a run file, or found from records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from penstock.config.errors import ConfigError, Problem
from penstock.config.nearest import hint
from penstock.readers.sections import Field, FieldType
from penstock.readers.tfrecord.wire import BYTES_KIND, FLOAT_KIND, INT64_KIND

Declared = "str | Feature | tuple[Any, ...] | list[str]"
ANY_LENGTH: Literal["any"] = "any"

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32")
_ARROW_TYPES: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    **{name: getattr(pa, name)() for name in _INTEGERS},
    "float32": pa.float32(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_KINDS = {
    **dict.fromkeys(("bool", *_INTEGERS), INT64_KIND),
    **dict.fromkeys(("float32", "float64"), FLOAT_KIND),
    **dict.fromkeys(("string", "bytes"), BYTES_KIND),
}
_FIELD_TYPES = {
    "INT32": "int32",
    "INT64": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "STRING": "string",
}


@dataclass(frozen=True)
class Feature:
    """What one column holds.

    >>> Feature("float32", 3).arrow_type
    FixedSizeListType(fixed_size_list<item: float>[3])
    """

    type: str
    """bool, int8 to int64, uint8 to uint32, float32, float64, string (UTF-8), or bytes."""
    length: int | Literal["any"] | None = None
    """None: one value; a number: a list of so many; "any": a list of any length."""
    default: Any = None
    """For rows that do not have it; None: null, or where any length will do, an empty list."""

    def __post_init__(self) -> None:
        if self.type not in _ARROW_TYPES:
            raise ValueError(f"the type '{self.type}' is unknown; {hint(self.type, _ARROW_TYPES)}")
        if self.length not in (None, ANY_LENGTH) and not _is_positive(self.length):
            raise ValueError(f'the length {self.length!r} is neither a number above 0 nor "{ANY_LENGTH}"')
        if self.default is not None:
            try:
                pa.scalar(self.default_value, self.arrow_type)
            except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
                raise ValueError(f"the default {self.default!r} is no {self.arrow_type}") from error

    @property
    def kind(self) -> int:
        """Which list of a tf.train.Feature holds it."""
        return _KINDS[self.type]

    @property
    def value_type(self) -> Any:
        """Of one value."""
        return _ARROW_TYPES[self.type]

    @cached_property
    def arrow_type(self) -> Any:
        """Of the column."""
        if self.length is None:
            return self.value_type
        if self.length == ANY_LENGTH:
            return pa.list_(self.value_type)
        return pa.list_(self.value_type, self.length)

    @property
    def default_value(self) -> Any:
        """The default for a row: one value stands for as many as a list of fixed length has."""
        is_one_of_many = isinstance(self.length, int) and not isinstance(self.default, list | tuple)
        return [self.default] * self.length if is_one_of_many else self.default  # type: ignore[operator]


def _is_positive(length: object) -> bool:
    return isinstance(length, int) and length > 0


def parse_schema(schema: Mapping[str, Any]) -> dict[str, Feature]:
    """The columns of a schema in Python; all problems at once.

    "int64" is one value, ("float32", 10) a list of ten, ["int64"] a list of any length, and ("int64", (), 0) one
    value that is 0 where it is missing.

    >>> parse_schema({"label": "int64", "features": ("float32", 10)})["features"]
    Feature(type='float32', length=10, default=None)
    """
    features: dict[str, Feature] = {}
    problems: list[Problem] = []
    for name, declared in schema.items():
        try:
            features[name] = _parse(declared)
        except ValueError as error:
            problems.append(Problem(f"schema['{name}']", str(error)))
    if problems:
        raise ConfigError(problems)
    return features


def _parse(declared: Any) -> Feature:
    match declared:
        case Feature():
            return declared
        case str(type_name):
            return Feature(type_name)
        case [str(type_name)] if isinstance(declared, list):
            return Feature(type_name, ANY_LENGTH)
        case (str(type_name), length, *default) if isinstance(declared, tuple) and len(default) <= 1:
            return Feature(type_name, _length(length), *default)
    raise ValueError(
        f'{declared!r} is not a type; write "int64", ("float32", 10), ["int64"] or ("int64", (), 0) with a default'
    )


def _length(declared: Any) -> Any:
    """A length, also as the shape that it is the only number of."""
    match declared:
        case () | []:
            return None
        case (length,) | [length]:
            return length
        case tuple() | list():
            raise ValueError(
                f"the shape {declared!r} has several dimensions; give the number of values, and reshape"
            )
    return declared


def parse_fields(fields: Iterable[Field]) -> dict[str, Feature]:
    """The columns that a run file declares. Maps, and lists of lists, stay text: the features split it."""
    return {field.input_name: _of_type(field.input_type) for field in fields if field.input_type is not None}


def _of_type(field_type: FieldType) -> Feature:
    if field_type.value in _FIELD_TYPES:
        return Feature(_FIELD_TYPES[field_type.value])
    item_type = field_type.value.removeprefix("ARRAY_")
    return Feature(_FIELD_TYPES[item_type], ANY_LENGTH) if item_type in _FIELD_TYPES else Feature("string")
