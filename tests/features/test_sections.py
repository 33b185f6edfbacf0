"""Options of features and parsing."""

import pytest
from pydantic import ValidationError

from penstock.features.sections.basic import IdFeature, RawFeature
from penstock.features.sections.feature import FeatureConfig
from penstock.features.sections.parsing import FgMode, ParsingSection
from penstock.features.sections.special import KvDotProduct


def id_feature(**options):
    return IdFeature.model_validate(
        {"feature_name": "city", "expression": "user:city", "embedding_dim": 4, **options}
    )


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


def test_an_id_feature_says_once_how_many_rows_its_table_has():
    assert id_feature(hash_bucket_size=100).hash_bucket_size == 100
    with pytest.raises(ValidationError, match="one of num_buckets, hash_bucket_size, vocab_list"):
        id_feature()
    with pytest.raises(ValidationError, match="only one of num_buckets, vocab_list may be set"):
        id_feature(num_buckets=3, vocab_list=["a"])


def test_a_vocabulary_holds_a_value_once():
    with pytest.raises(ValidationError, match="has 'a' more than once"):
        id_feature(vocab_list=["a", "b", "a"])


def test_boundaries_rise_and_make_ids():
    raw = {"feature_name": "age", "expression": "user:age"}
    with pytest.raises(ValidationError, match="must rise; 10 follows 20"):
        RawFeature.model_validate({**raw, "boundaries": [20.0, 10.0], "embedding_dim": 4})
    with pytest.raises(ValidationError, match="boundaries make ids, which need embedding_dim"):
        RawFeature.model_validate({**raw, "boundaries": [10.0, 20.0]})


def test_pooling_is_a_word_of_a_list():
    with pytest.raises(ValidationError, match="is 'meen'; did you mean 'mean'"):
        id_feature(num_buckets=3, pooling="meen")


def test_exactly_one_type_of_feature_is_written():
    with pytest.raises(ValidationError, match="is required"):
        FeatureConfig.model_validate({})


def test_the_old_number_of_a_delimiter_is_read_as_its_text():
    options = {"feature_name": "match", "query": "user:tags", "document": "item:tags"}

    assert KvDotProduct.model_validate({**options, "kv_delimiter": "="}).kv_delimiter == "="
    assert KvDotProduct.model_validate({**options, "kv_delimiter": 1.0}).kv_delimiter == "1"
