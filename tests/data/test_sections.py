"""The part of data_config about batches."""

import pytest
from pydantic import ValidationError

from penstock.config.sizes import MIB
from penstock.data.sections import BatchingSection


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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sample_cost_field", "length"),
        ("sample_cost", "sum_of_lengths(clicks)"),
        ("max_batch_rows", 8),
        ("oversize", "drop"),
        ("null_cost", 1),
    ],
)
def test_what_is_about_costs_needs_a_cost_limit(key, value):
    assert place_and_message({key: value}) == (
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
    cost = {"sample_cost_field": "cost", "batch_cost_size": 10}

    assert BatchingSection.model_validate({"null_cost": "error"}).null_cost is None
    assert BatchingSection.model_validate(cost | {"null_cost": 1}).null_cost == 1.0


def test_a_cost_expression_is_checked_with_the_run_file():
    assert place_and_message({"sample_cost": "sum_of_length(clicks)", "batch_cost_size": 10}) == (
        ("sample_cost",),
        "Value error, there is no function 'sum_of_length'; did you mean 'sum_of_lengths'?",
    )


def test_only_one_way_to_tell_the_cost():
    both = {"sample_cost": "sum_of_lengths(a)", "sample_cost_field": "b", "batch_cost_size": 10}

    assert place_and_message(both) == (
        (),
        "Value error, only one of sample_cost_field, sample_cost may be set; both are",
    )


def test_rows_are_brought_together_only_inside_a_shuffle():
    assert BatchingSection(bucket_by="clicks", shuffle=True).bucket_by == "clicks"
    assert place_and_message({"bucket_by": "clicks"}) == (
        ("bucket_by",),
        "needs shuffle: true, since rows are brought together inside the shuffle buffer",
    )
