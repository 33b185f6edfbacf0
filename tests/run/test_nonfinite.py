"""Batches whose loss is not finite: how many may be passed over, and how much is said about them."""

import pytest

from penstock.config.errors import DataError
from tests.run.training_runs import trained

SKIP = {
    "data_config.batch_size": 2,
    "data_config.sample_weight_fields": ["weight"],
    "train_config.on_nonfinite": "skip",
    "train_config.save_checkpoints_steps": 0,
    "eval_input_path": "",
}
HEAVY = 3.4e38


def write_batches(desk, weights):
    """Two rows for each weight; the sum of two heavy ones is infinite, and the loss of their batch no number."""
    num_rows = 2 * len(weights)
    ids = [row % 100 for row in range(num_rows)]
    desk.write_clicks(
        user_id=ids,
        item_id=ids,
        price=[0.5] * num_rows,
        click=[row % 2 for row in ids],
        weight=[weight for weight in weights for _ in range(2)],
    )


def warnings_of(caplog):
    return [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]


def test_too_many_skipped_batches_in_a_row_end_the_run(desk):
    write_batches(desk, [1.0, 1.0] + [HEAVY] * 30)

    with pytest.raises(DataError) as caught:
        trained(desk, SKIP)

    assert str(caught.value) == (
        "step 3: the loss of 20 batches in a row is not finite (now nan; train_config.max_skipped_in_a_row), "
        "which is hardly the fault of their rows; those of the first are in run/nonfinite: look at them, or lower "
        "the learning rate, or set train_config.grad_clipping; --continue_train goes on from the newest checkpoint"
    )
    assert len(list((desk.folder / "run/nonfinite").iterdir())) == 10


def test_how_many_are_too_many_is_a_setting(desk):
    write_batches(desk, [1.0, HEAVY, HEAVY, 1.0])

    with pytest.raises(DataError, match="step 2: the loss of 2 batches in a row is not finite"):
        trained(desk, SKIP | {"train_config.max_skipped_in_a_row": 2})
    assert trained(desk, SKIP | {"model_dir": "other", "train_config.max_skipped_in_a_row": 3}).steps == 2


def test_a_step_in_between_begins_the_count_anew(desk):
    write_batches(desk, [1.0, HEAVY] * 4)

    result = trained(desk, SKIP | {"train_config.max_skipped_in_a_row": 2})

    assert (result.steps, result.skipped_batches) == (4, 4)


def test_after_the_first_three_only_tenfolds_are_told(desk, caplog):
    write_batches(desk, [1.0] + [HEAVY] * 15 + [1.0])

    result = trained(desk, SKIP)

    told = warnings_of(caplog)
    assert result.skipped_batches == 15
    assert [line.startswith("step 2: the loss is nan on 2 rows") for line in told] == [
        True,
        True,
        True,
        False,
    ]
    assert told[3] == "10 batches skipped, since their loss is not finite"
