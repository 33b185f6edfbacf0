"""The part of data_config about batches."""

import pytest
from pydantic import ValidationError

from penstock.batching.sections import BatchingSection
from penstock.config.sizes import MIB


def place_and_message(data):
    with pytest.raises(ValidationError) as error:
        BatchingSection.model_validate(data)
    [detail] = error.value.errors()
    return detail["loc"], detail["msg"]


def test_a_shuffle_buffer_is_a_size():
    assert BatchingSection.model_validate({"shuffle_buffer": "2MiB"}).shuffle_buffer == 2 * MIB


def test_a_shuffle_buffer_is_large_enough():
    assert place_and_message({"shuffle_buffer": 12}) == (
        ("shuffle_buffer",),
        "Value error, is 12; a shuffle needs at least 1MiB",
    )


def test_a_cost_limit_needs_a_cost():
    assert place_and_message({"batch_cost_size": 10}) == (
        ("batch_cost_size",),
        "needs sample_cost_field, the column with the cost of a row",
    )


@pytest.mark.parametrize("key", ["sample_cost_field", "sample_cost"])
def test_a_cost_needs_a_cost_limit(key):
    assert place_and_message({key: "length"}) == (
        (key,),
        "needs batch_cost_size, the most that a batch may cost",
    )


def test_the_old_shuffle_buffer_counts_only_alone():
    assert BatchingSection().shuffle_batches() is None
    assert BatchingSection(shuffle_buffer_size=8).shuffle_batches() == 8
    assert BatchingSection(shuffle_buffer_size=8, shuffle_buffer=MIB).shuffle_batches() is None


def test_evaluation_takes_the_batch_size_of_training_unless_told():
    assert BatchingSection(batch_size=8).resolved_eval_batch_size() == 8
    assert BatchingSection(batch_size=8, eval_batch_size=4).resolved_eval_batch_size() == 4


def test_null_cost_error_is_the_default():
    assert BatchingSection.model_validate({"null_cost": "error"}).null_cost is None
    assert BatchingSection.model_validate({"null_cost": 1}).null_cost == 1.0
