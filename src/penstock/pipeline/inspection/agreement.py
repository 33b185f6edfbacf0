"""Files of one data set that do not agree on their columns: looked at as far as they do, and told."""

import os
from collections.abc import Sequence

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import Survey, Wanted, survey


def survey_agreeing(reading: ReadingSection, files: Sequence[DataFile]) -> tuple[Survey, list[str]]:
    """A survey of the files that have the columns and types of the first, and what to say about the others."""
    try:
        return survey(reading, files, Wanted()), []
    except DataError:
        if len(files) == 1:
            raise
        # A file that cannot be read at all is told here, alone.
        schemas = [survey(reading, [file], Wanted()).columns for file in files]
        same = [file for file, schema in zip(files, schemas, strict=True) if schema.equals(schemas[0])]
        if len(same) == len(files):
            raise
    other = next(index for index, schema in enumerate(schemas) if not schema.equals(schemas[0]))
    difference = _difference(schemas[0], files[0], schemas[other], files[other])
    left_out = (
        f"{len(files) - len(same):,} of {len(files):,} files differ from the first and were left out here"
    )
    return survey(reading, same, Wanted()), [
        f"{difference}; {left_out}; write all with the same columns and types"
    ]


def _difference(first: pa.Schema, first_file: DataFile, second: pa.Schema, second_file: DataFile) -> str:
    first_name, second_name = os.path.basename(first_file.path), os.path.basename(second_file.path)
    for one in first:
        if one.name not in second.names:
            return f"column '{one.name}' of {first_name} is not in {second_name}"
        other_type = second.field(one.name).type
        if other_type != one.type:
            return f"column '{one.name}' is {one.type} in {first_name} but {other_type} in {second_name}"
    added = next((name for name in second.names if name not in first.names), None)
    if added is not None:
        return f"column '{added}' of {second_name} is not in {first_name}"
    return f"the columns of {second_name} have another order than those of {first_name}"
