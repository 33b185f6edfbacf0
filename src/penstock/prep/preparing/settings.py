"""What the run file says about samples, in the terms of the work."""

from typing import Any

from penstock.config.write import section_data
from penstock.prep.preparing.changes import MODULE_CHECKSUM
from penstock.prep.preparing.extraction.extract_function import source_checksum
from penstock.prep.preparing.extraction.extraction import Extraction
from penstock.prep.preparing.extraction.feature_groups import group_arrays
from penstock.prep.sections import Preprocessing, SplitBy
from penstock.readers.sections import ReadingSection


def extraction_of(section: Preprocessing, reading: ReadingSection) -> Extraction:
    """How raw files become samples."""
    return Extraction(section.extract, section.sample_schema, reading, _group_key(section))


def feature_types(section: Preprocessing) -> dict[str, str]:
    """The type of each array of features: that of its group where the run file has one, else that of all features."""
    usual, own = feature_dtype(section), section.feature_dtypes
    return {section.sample_schema.features_name: usual} | {
        array: own[group].value if group in own else usual
        for group, array in group_arrays(section.sample_schema).items()
    }


def feature_dtype(section: Preprocessing) -> str:
    """The type of the features' numbers: `dtype` where it is written, else what `use_float32` says."""
    if "dtype" not in section.model_fields_set and not section.use_float32:
        return "float64"
    return section.dtype.value


def one_input_per_batch(section: Preprocessing) -> bool:
    """Whether splits keep the samples of an input together."""
    return section.splits is not None and section.splits.by is SplitBy.file


def decisive_settings(section: Preprocessing, reading: ReadingSection) -> dict[str, Any]:
    """What decides which bytes are in the batch files, as JSON can carry it; the first difference is told by name."""
    settings: dict[str, Any] = {
        "extract": section.extract,
        "batch_size": section.batch_size,
        "dtype": feature_dtype(section),
        "feature_dtypes": {group: dtype.value for group, dtype in section.feature_dtypes.items()},
        "schema": section_data(section.sample_schema, full=True),
        "layout": section.layout.value,
        "compression": section.compression.value,
        "compression_level": section.compression_level,
        "splits.by": _kept_together(section),
        "splits.group_key": _group_key(section),
    }
    if section.extract is None:
        settings["data_config"] = section_data(reading, full=True)
    else:
        settings[MODULE_CHECKSUM] = source_checksum(section.extract)
    return settings


def _kept_together(section: Preprocessing) -> str:
    """What of splits.by batch files know: whether they have groups, and whether they end where an input does."""
    return (SplitBy.sample if section.splits is None else section.splits.by).value


def _group_key(section: Preprocessing) -> str | None:
    splits = section.splits
    return splits.group_key if splits is not None and splits.by is SplitBy.group else None
