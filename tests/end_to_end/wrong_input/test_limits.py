"""Limits that are too small are refused with the numbers, before the first step."""

import pytest

from tests.end_to_end.wrong_input.mistake import Wrong


@pytest.mark.parametrize(
    "wrong",
    [
        Wrong("for the model", (('user_id", num_buckets: 100', 'user_id", num_buckets: 1000000000'),)),
        Wrong("for a batch", (("batch_size: 4", "batch_size: 400000000"),)),
        Wrong(
            "for a batch of evaluation", (("batch_size: 4", "batch_size: 4\n  eval_batch_size: 400000000"),)
        ),
        Wrong(
            "for the shuffle", (("batch_size: 4", "batch_size: 4\n  shuffle: true\n  shuffle_buffer: 16GiB"),)
        ),
        Wrong("for Python itself", (("limit: 8GiB", "limit: 100MiB"),)),
        Wrong("for anything", (("limit: 8GiB", "limit: 1MiB"),)),
    ],
    ids=str,
)
def test_a_limit_that_is_too_small(desk, assert_refused, wrong):
    assert_refused(desk, wrong)
