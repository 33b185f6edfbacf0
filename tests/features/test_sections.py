"""Options of features and parsing, and what they say about a table."""

import pytest
from pydantic import ValidationError

from penstock.features.sections import FeatureConfig, FgMode, ParsingSection
from penstock.features.sections.types import RawFeature, has_table, table_rows


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ({}, FgMode.FG_NONE),
        ({"fg_mode": "FG_NORMAL"}, FgMode.FG_NORMAL),
        ({"fg_encoded": True}, FgMode.FG_NONE),
        ({"fg_encoded": False}, FgMode.FG_DAG),
        ({"fg_encoded": False, "fg_threads": 0}, FgMode.FG_NORMAL),
        ({"fg_encoded": True, "fg_mode": "FG_NORMAL"}, FgMode.FG_NONE),
    ],
)
def test_the_old_fg_encoded_wins_where_it_is_written(written, mode):
    assert ParsingSection.model_validate(written).resolved_fg_mode() is mode


def test_boundaries_rise_and_make_ids():
    raw = {"feature_name": "age", "expression": "user:age"}
    with pytest.raises(ValidationError, match="must rise; 10 follows 20"):
        RawFeature.model_validate({**raw, "boundaries": [20.0, 10.0], "embedding_dim": 4})

    plain, cut = {}, {"boundaries": [10.0, 20.0], "embedding_dim": 4}
    sections = [RawFeature.model_validate({**raw, **options}) for options in (plain, cut)]
    assert [(has_table(section), table_rows(section)) for section in sections] == [(False, None), (True, 3)]


ID = {"feature_name": "f", "expression": "user:f", "embedding_dim": 4}


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"num_buckets": 7}, 7),
        ({"hash_bucket_size": 9}, 9),
        ({"vocab_list": ["a", "b"]}, 4),
        ({"vocab_list": ["a", "b"], "default_bucketize_value": 2}, 3),
        ({"vocab_dict": {"a": 2, "b": 7}}, 8),
        ({"vocab_dict": {"a": 0, "b": 3}, "default_bucketize_value": 5}, 6),
    ],
)
def test_rows_of_an_id_feature(one_feature, options, rows):
    section = FeatureConfig.model_validate({"id_feature": {**ID, **options}}).id_feature

    assert has_table(section)
    assert table_rows(section) == rows
    assert one_feature("id_feature", "FG_NORMAL", **options).table.num_rows == rows
