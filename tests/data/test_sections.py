"""The part of data_config about batches."""

import pytest
from pydantic import ValidationError

from penstock.data.sections import BatchingSection
from penstock.tensors.sections import LoadingSection


@pytest.mark.parametrize(
    ("data", "location", "message"),
    [
        (
            {"batch_cost_size": 10},
            ("batch_cost_size",),
            "needs sample_cost_field, the column with the cost of a row",
        ),
        ({"oversize": "drop"}, ("oversize",), "needs batch_cost_size, the most that a batch may cost"),
        (
            {"sample_cost": "sum_of_lengths(a)", "sample_cost_field": "b", "batch_cost_size": 10},
            (),
            "Value error, only one of sample_cost_field, sample_cost may be set; both are",
        ),
        (
            {"bucket_by": "clicks"},
            ("bucket_by",),
            "needs shuffle: true, since rows are brought together inside the shuffle buffer",
        ),
    ],
)
def test_settings_that_do_not_go_together(data, location, message):
    with pytest.raises(ValidationError) as error:
        BatchingSection.model_validate(data)
    [detail] = error.value.errors()
    assert (detail["loc"], detail["msg"]) == (location, message)


def test_what_counts_where_several_keys_say_it():
    assert BatchingSection(batch_size=8).resolved_eval_batch_size() == 8
    assert BatchingSection(batch_size=8, eval_batch_size=4).resolved_eval_batch_size() == 4
    assert BatchingSection.model_validate({"null_cost": "error"}).null_cost is None


def test_a_number_of_batches_is_no_number_of_bytes():
    with pytest.raises(
        ValidationError, match="is 2 bytes; write at least 1MiB, or leave it out to have it chosen"
    ):
        LoadingSection(prefetch=2)
