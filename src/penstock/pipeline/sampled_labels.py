"""Labels that were taken for text: the types of text files are found from samples, where bad values count too."""

from collections.abc import Sequence

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.sections import DatasetType, ReadingSection
from penstock.readers.survey import Survey, dataset_type_of

_SAMPLED = (DatasetType.CsvDataset, DatasetType.JsonDataset)
"""Formats that do not say the types of their columns."""


def check_sampled_labels(reading: ReadingSection, survey: Survey, columns: Sequence[str]) -> None:
    """Refuse labels and weights that samples made text of, with what to declare so that bad values are found."""
    if dataset_type_of(reading, survey.files) not in _SAMPLED or not survey.num_rows:
        return
    declared = {field.input_name for field in reading.resolved_input_fields() if field.input_type is not None}
    for name in columns:
        if name not in declared and pa.types.is_string(survey.columns.field(name).type):
            raise DataError.at(
                "not all of its values are numbers, so that it was taken for text; declare its type in "
                f"data_config.input_fields ({{input_name: {name}, input_type: INT64}}): then the first bad row is "
                "named, or with data_config.bad_rows: quarantine all of them are set aside",
                file=survey.files[0].path if len(survey.files) == 1 else None,
                column=name,
            )
