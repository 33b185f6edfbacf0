"""Text where numbers should be: which value it is, and in which row, since one in a large file is hard to find.

A column of a CSV file is read as text also where no row of it that was looked at has a value: then there is none to
blame, and what stands there is missing.
"""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.reading import read_blocks
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Wanted, dataset_type_of, survey
from penstock.runtime.budget import Share

FEATURE_COLUMNS = "feature_columns"

_MOST_CHARACTERS = 40
_MISSING = frozenset(pyarrow.csv.ConvertOptions().null_values or ())
"""What stands for a missing value in a CSV file, nothing at all among them."""


def text_in(
    values: Iterable[Any], file: str, column: str, first_row: int = 0, key: str = FEATURE_COLUMNS
) -> DataError | None:
    """The error of the first value that is no number; None where all of them are, or are missing.

    `key` is the one of the schema that names columns like this.
    """
    for row, value in enumerate(values, first_row):
        if value is not None and not _is_number(value):
            text = str(value)
            shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
            return DataError.at(_advice(key), file=file, row=row, column=column, value=shown)
    return None


def text_in_file(
    reading: ReadingSection, file: DataFile, column: str, key: str = FEATURE_COLUMNS
) -> DataError | None:
    """The same for a column of a file, which is read up to that value.

    Features that a CSV file has now and then are no error: only a part of it was looked at to find the type.
    """
    found = survey(reading, [file], Wanted((column,)))
    row, has_numbers = 0, False
    with closing(iter(read_blocks(found, Share("the reader", found.least_bytes)))) as batches:  # type: ignore[type-var]
        for batch in batches:
            values = batch.column(column)
            numbers = _numbers(values)
            if numbers is None:
                error = text_in(values.to_pylist(), file.path, column, row, key)
                if error is not None:
                    return error
            has_numbers |= (values if numbers is None else numbers).null_count < len(values)
            row += batch.num_rows
    if not has_numbers or (key == FEATURE_COLUMNS and dataset_type_of(reading, [file]) == "CsvDataset"):
        return None
    return DataError.at(
        "holds numbers written as text; declare its type in data_config.input_fields",
        file=file.path,
        column=column,
    )


def text_numbers(values: Any) -> Any:
    """A column of texts as numbers, null where they are missing; ArrowInvalid where one is no number."""
    is_missing = pc.is_in(values, value_set=pa.array(sorted(_MISSING), values.type))
    return pc.if_else(is_missing, pa.scalar(None, values.type), values).cast(pa.float64())


def _numbers(values: Any) -> Any:
    """Those of texts; None where one is no number, and of what is no text."""
    try:
        return text_numbers(values) if is_text(values.type) else None
    except pa.ArrowInvalid:
        return None


def is_text(kind: Any) -> bool:
    """Whether a type is that of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _advice(key: str) -> str:
    if key == FEATURE_COLUMNS:
        cure = f"do without the column: preprocessing.schema.{key} names the features"
    else:
        cure = f"take another column: preprocessing.schema.{key} names those of the heads"
    return f"is no number; correct it, or {cure}"


def _is_number(value: Any) -> bool:
    """Whether it is one, or stands for one that is missing."""
    try:
        if isinstance(value, str):
            return value in _MISSING or pa.scalar(value).cast(pa.float64()).is_valid
        float(value)
    except (TypeError, ValueError):
        return False
    return True
