"""What options say about a table is what the built feature asks for."""

import pytest

from penstock.features.sections.feature import FeatureConfig
from penstock.features.sections.table_shape import has_table, table_rows

ID = {"feature_name": "f", "expression": "user:f", "embedding_dim": 4}


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"num_buckets": 7}, 7),
        ({"hash_bucket_size": 9}, 9),
        ({"vocab_list": ["a", "b"]}, 4),
        ({"vocab_list": ["a", "b"], "default_value": "x"}, 4),
        ({"vocab_list": ["a", "b"], "default_bucketize_value": 2}, 3),
        ({"vocab_list": ["a", "b"], "default_bucketize_value": 0}, 2),
        ({"vocab_dict": {"a": 2, "b": 7}}, 8),
        ({"vocab_dict": {"a": 0, "b": 3}, "default_bucketize_value": 5}, 6),
    ],
)
def test_rows_of_an_id_feature(one_feature, options, rows):
    section = FeatureConfig.model_validate({"id_feature": {**ID, **options}}).id_feature

    assert has_table(section)
    assert table_rows(section) == rows
    assert one_feature("id_feature", "FG_NORMAL", **options).table.num_rows == rows


def test_numbers_have_a_table_once_boundaries_make_them_ids(one_feature):
    number = {"feature_name": "f", "expression": "user:f"}
    plain = FeatureConfig.model_validate({"raw_feature": number}).raw_feature
    cut = {"boundaries": [1.0, 2.0], "embedding_dim": 4}
    bucketized = FeatureConfig.model_validate({"raw_feature": {**number, **cut}}).raw_feature

    assert (has_table(plain), table_rows(plain)) == (False, None)
    assert (has_table(bucketized), table_rows(bucketized)) == (True, 3)
    assert one_feature("raw_feature", "FG_NORMAL", **cut).table.num_rows == 3
