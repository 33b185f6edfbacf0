"""What the columns of TFRecord files hold: declared by a schema in Python, by a run file, or found from records."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import pyarrow as pa

from penstock.config.errors import ConfigError, Problem
from penstock.config.nearest import hint
from penstock.readers.sections import Field
from penstock.readers.tfrecord_kernels import BYTES_KIND, FLOAT_KIND, INT64_KIND

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
        """Which list of a tf.train.Feature holds it."""
        return _KINDS[self.type]

    @property
    def value_type(self) -> Any:
        return _ARROW_TYPES[self.type]

    @cached_property
    def arrow_type(self) -> Any:
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
            match length:  # also as the shape that it is the only number of
                case () | []:
                    length = None
                case (number,) | [number]:
                    length = number
                case tuple() | list():
                    raise ValueError(
                        f"the shape {length!r} has several dimensions; give the number of values, and reshape"
                    )
            return Feature(type_name, length, *default)
    raise ValueError(
        f'{declared!r} is not a type; write "int64", ("float32", 10), ["int64"] or ("int64", (), 0) with a default'
    )


def parse_fields(fields: Iterable[Field]) -> dict[str, Feature]:
    """The columns that a run file declares. Maps, and lists of lists, stay strings: the features split them."""
    features: dict[str, Feature] = {}
    for field in fields:
        if field.input_type is not None:
            name = field.input_type.value
            item_type = _FIELD_TYPES.get(name.removeprefix("ARRAY_"))
            length = ANY_LENGTH if name.startswith("ARRAY_") else None
            features[field.input_name] = Feature(item_type, length) if item_type else Feature("string")
    return features
