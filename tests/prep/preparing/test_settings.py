"""What the run file says about samples."""

from pathlib import Path
from typing import Any

import pytest

from penstock.prep.preparing.settings import (
    decisive_settings,
    feature_dtype,
    feature_types,
    one_input_per_batch,
)
from penstock.prep.sections import Preprocessing
from penstock.readers.sections import ReadingSection


def preprocessing(**keys: Any) -> Preprocessing:
    return Preprocessing.model_validate(keys)


@pytest.mark.parametrize(
    ("keys", "dtype"),
    [
        ({}, "float32"),
        ({"use_float32": False}, "float64"),
        ({"dtype": "float16"}, "float16"),
        ({"use_float32": False, "dtype": "float16"}, "float16"),
    ],
)
def test_the_type_of_features(keys: dict[str, Any], dtype: str):
    assert feature_dtype(preprocessing(**keys)) == dtype


def test_groups_of_features_have_types_of_their_own():
    section = preprocessing(
        use_float32=False,
        schema={"features_name": "seen", "feature_groups": {"board": 9, "prices": ["price_*"]}},
        feature_dtypes={"prices": "float16"},
    )

    assert feature_types(section) == {"seen": "float64", "seen_board": "float64", "seen_prices": "float16"}


def test_what_changes_no_byte_is_not_decisive():
    usual = decisive_settings(preprocessing(), ReadingSection())

    for keys in (
        {"num_workers": 7, "parallel": False, "executor": "ray"},
        {"verbose": False, "monitor_memory": False, "on_error": "skip"},
        {"output_dir": "elsewhere", "shuffle": True, "seed": 3, "merge_workers": 4, "target": "parquet"},
        {"splits": {"by": "sample"}},
    ):
        assert decisive_settings(preprocessing(**keys), ReadingSection()) == usual
    for keys in (
        {"batch_size": 3},
        {"layout": "npz"},
        {"compression": "zstd", "compression_level": 3},
        {"schema": {"labels": {"buy": "int32"}}},
        {"schema": {"feature_groups": {"a": 2}}, "feature_dtypes": {"a": "float16"}},
        {"splits": {"by": "file"}},
        {"splits": {"by": "group", "group_key": "match"}},
    ):
        assert decisive_settings(preprocessing(**keys), ReadingSection()) != usual
    assert decisive_settings(preprocessing(), ReadingSection(delimiter=";")) != usual


def test_how_columns_are_read_does_not_matter_to_a_function(desk: Path):
    del desk
    section = preprocessing(extract="rawgame:samples")

    assert decisive_settings(section, ReadingSection()) == decisive_settings(
        section, ReadingSection(delimiter=";")
    )


def test_batches_end_with_inputs_where_splits_go_by_file():
    assert not one_input_per_batch(preprocessing(splits={}))
    assert one_input_per_batch(preprocessing(splits={"by": "file"}))


def test_the_key_that_was_changed_is_the_first_that_differs():
    by_group, by_file = (
        decisive_settings(preprocessing(splits={"group_key": "match", "by": by}), ReadingSection())
        for by in ("group", "file")
    )

    assert next(key for key in by_group if by_group[key] != by_file[key]) == "splits.by"
