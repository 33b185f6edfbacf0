"""The part of data_config about reading files: format, columns, and what happens to bad rows."""

import codecs
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import AfterValidator, PositiveInt, model_validator

from penstock.config.errors import hint
from penstock.config.section import Ignored, Section
from penstock.readers import FORMATS

_SCALARS = ("INT32", "INT64", "STRING", "FLOAT", "DOUBLE")
_CONTAINERS = ("", "ARRAY_", "ARRAY_ARRAY_", "MAP_STRING_", "MAP_INT64_", "MAP_INT32_")

if TYPE_CHECKING:
    DatasetType = str
    FieldType = StrEnum
else:
    DatasetType = StrEnum("DatasetType", {name: name for name in (*FORMATS, "OdpsDatasetV1", "KafkaDataset")})
    DatasetType.__doc__ = """The format of the input files."""
    FieldType = StrEnum(
        "FieldType", {f"{each}{kind}": f"{each}{kind}" for each in _CONTAINERS for kind in _SCALARS}
    )
    FieldType.__doc__ = """The type of an input column."""


class BadRows(StrEnum):
    """What happens to a row that cannot be used."""

    error = "error"
    quarantine = "quarantine"


class Field(Section):
    """One column of the input, where the file does not say its type."""

    input_name: str
    """Name of the column."""

    input_type: FieldType | None = None
    """Its type; absent: found from the data."""


def parse_fields(text: str) -> list[Field]:
    """The columns of a text such as 'a:BIGINT;b:ARRAY<STRING>'; BIGINT is INT64, INT is INT32."""
    fields = []
    for part in filter(None, (piece.strip() for piece in text.split(";"))):
        name, colon, type_text = part.partition(":")
        if not colon or not name.strip():
            raise ValueError(f"has '{part}'; expected name:TYPE, separated by ';'")
        fields.append(Field(input_name=name.strip(), input_type=parse_field_type(type_text)))
    return fields


def parse_field_type(text: str) -> FieldType:
    """The type that a text such as BIGINT, INT64, ARRAY<STRING> or MAP<STRING,DOUBLE> means."""
    parts = text.upper().replace(" ", "").replace("<", "_").replace(",", "_").replace(">", "").split("_")
    name = "_".join({"BIGINT": "INT64", "INT": "INT32"}.get(part, part) for part in parts)
    if name not in FieldType.__members__:
        raise ValueError(f"has the unknown type '{text.strip()}'; {hint(name, FieldType.__members__)}")
    return FieldType(name)


def _readable(text: str | None) -> str | None:
    parse_fields(text or "")
    return text


def _one_character(delimiter: str | None) -> str | None:
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"is {delimiter!r}; columns are separated by one character")
    return delimiter


def _known_encoding(encoding: str) -> str:
    """As it is written, but UTF8 is utf-8."""
    try:
        "".encode(encoding)  # refuses what is known but makes no bytes of strings
        return "utf-8" if codecs.lookup(encoding).name == "utf-8" else encoding
    except (LookupError, ValueError):
        raise ValueError(f"is {encoding!r}; known are utf-8, latin-1, cp1252, gbk, utf-16, ...") from None


def _supported(dataset_type: DatasetType | None) -> DatasetType | None:
    if dataset_type == "KafkaDataset":
        raise ValueError("KafkaDataset is not supported; read files, or write the topic to files first")
    return DatasetType("OdpsDataset") if dataset_type == "OdpsDatasetV1" else dataset_type


class ReadingSection(Section):
    """The part of data_config about reading files."""

    dataset_type: Annotated[DatasetType | None, AfterValidator(_supported)] = None
    """Format of the input files; absent: it follows from the path. OdpsDatasetV1 is OdpsDataset."""

    input_fields: list[Field] = []
    """Columns whose type the files do not say, or say otherwise."""

    input_fields_str: Annotated[str | None, AfterValidator(_readable)] = None
    """The same as one text: 'a:BIGINT;b:ARRAY<STRING>'."""

    delimiter: Annotated[str | None, AfterValidator(_one_character)] = None
    """Between the columns of a CSV file; absent: found among comma, tab, ; and |, in text format a comma."""

    with_header: bool | None = None
    """Whether the first line of a CSV file names its columns; absent: found from it, in text format false."""

    encoding: Annotated[str, AfterValidator(_known_encoding)] = "utf-8"
    """Of CSV and JSON files, such as latin-1, cp1252, gbk or utf-16."""

    decimal: Literal[".", ","] = "."
    """Between the whole part of a number and its fraction, in CSV files."""

    bad_rows: BadRows = BadRows.error
    """error: stop at a row that cannot be used. quarantine: write it aside with the reason, and go on."""

    bad_rows_limit: PositiveInt = 1000
    """With quarantine: stop after this many."""

    is_orderby_partition: Annotated[bool, Ignored("tables are always read in sorted order")] = False
    """Of the old schema."""

    odps_data_quota_name: Annotated[str, Ignored("quotas are a matter of the service")] = "pay-as-you-go"
    """Of the old schema."""

    odps_data_compression: Annotated[str, Ignored("compression is a matter of the service")] = "LZ4_FRAME"
    """Of the old schema."""

    @model_validator(mode="after")
    def _columns_once(self) -> Self:
        names = [field.input_name for field in self.resolved_input_fields()]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"input_fields and input_fields_str name '{twice[0]}' more than once")
        return self

    @model_validator(mode="after")
    def _point_is_no_delimiter(self) -> Self:
        if self.decimal == self.delimiter:
            raise ValueError(f"decimal and delimiter are both '{self.decimal}'; such files cannot be read")
        return self

    def resolved_input_fields(self) -> list[Field]:
        """The declared columns, from both ways to write them."""
        if not self.input_fields_str:
            return self.input_fields
        return [*self.input_fields, *parse_fields(self.input_fields_str)]
