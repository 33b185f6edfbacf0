"""Text where numbers should be: which value it is, and in which row, since one in a large file is hard to find."""

from collections.abc import Iterable
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.reading import read_blocks
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Wanted, survey
from penstock.runtime.budget import Share

_MOST_CHARACTERS = 40
_ADVICE = "is no number; correct it, or do without the column: preprocessing.schema.feature_columns names the features"


def text_in(values: Iterable[Any], file: str, column: str, first_row: int = 0) -> DataError | None:
    """The error of the first value that is no number; None where all of them are, or are missing."""
    for row, value in enumerate(values, first_row):
        if value is not None and not _is_number(value):
            text = str(value)
            shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}..."
            return DataError.at(
                _ADVICE,
                file=file,
                row=row,
                column=column,
                value=shown,
            )
    return None


def text_in_file(reading: ReadingSection, file: DataFile, column: str) -> DataError:
    """The same for a column of a file, which is read up to that value."""
    found = survey(reading, [file], Wanted((column,)))
    row = 0
    with closing(iter(read_blocks(found, Share("the reader", found.least_bytes)))) as batches:  # type: ignore[type-var]
        for batch in batches:
            error = text_in(batch.column(column).to_pylist(), file.path, column, row)
            if error is not None:
                return error
            row += batch.num_rows
    return DataError.at(
        "holds numbers written as text; declare its type in data_config.input_fields",
        file=file.path,
        column=column,
    )


def is_text(kind: Any) -> bool:
    """Whether a type is that of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True
