"""Batches that move nothing: a loss that is not finite, or not enough memory."""

import json

import pytest
import torch

from penstock.config.errors import BudgetExceeded, DataError
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
    columns = {"user_id": ids, "item_id": ids, "price": [0.5] * num_rows, "click": [row % 2 for row in ids]}
    desk.write_clicks(**columns, weight=[weight for weight in weights for _ in range(2)])


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


def test_how_many_are_too_many_is_a_setting_and_a_step_begins_the_count_anew(desk):
    write_batches(desk, [1.0, HEAVY, 1.0, HEAVY, HEAVY, 1.0])

    with pytest.raises(DataError, match="step 3: the loss of 2 batches in a row is not finite"):
        trained(desk, SKIP | {"train_config.max_skipped_in_a_row": 2})
    assert trained(desk, SKIP | {"model_dir": "other", "train_config.max_skipped_in_a_row": 3}).steps == 3


OF_GPU = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 15.77 GiB"


def terabytes():
    """A loss that asks for more than any machine has."""
    return lambda logits, labels: logits.square() + torch.empty(2**45).sum()


def full_device():
    """A loss that fails as a GPU does when its memory is full."""

    def loss(logits, labels):
        raise torch.OutOfMemoryError(OF_GPU)

    return loss


def own_loss(name: str) -> dict[str, object]:
    return {"model_config.losses": [{"custom_loss": {"place": f"{__name__}:{name}"}}]}


def test_the_line_tells_step_rows_memory_and_setting(desk):
    with pytest.raises(BudgetExceeded) as caught:
        trained(desk, own_loss("terabytes"))

    start, _, end = str(caught.value).partition(": 128TiB were asked for, ")
    assert start.startswith("step 1: memory ran out on a batch of 2 rows (rows 0 to 1 of clicks.parquet), ")
    assert start.endswith("B as read")
    taken, _, rest = end.partition("; ")
    assert taken.endswith("iB of memory.limit 8GiB were taken")
    assert rest == (
        "its rows are in run/out_of_memory/step-1.jsonl; lower data_config.batch_size, or the widths of "
        "tables and layers, then go on with --continue_train"
    )
    lines = (desk.folder / "run/out_of_memory/step-1.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["row"], row["labels"], row["features"]["user"]) for row in rows] == [
        (0, {"click": 0}, [1]),
        (1, {"click": 1}, [2]),
    ]


def test_a_full_device_batches_by_cost_and_rows_that_cannot_be_written_are_reported_too(desk):
    (desk.folder / "run").mkdir()
    desk.write("run/out_of_memory", "a file where the folder should be")
    by_cost = {"data_config.batch_cost_size": 8, "data_config.sample_cost_field": "item_id"}

    with pytest.raises(BudgetExceeded) as caught:
        trained(desk, own_loss("full_device") | by_cost)

    for part in (
        ", its cost at most 8: 2.5GiB were asked for, ",
        "; its rows could not be written to run/out_of_memory/step-1.jsonl: ",
        "; lower data_config.batch_cost_size, ",
    ):
        assert part in str(caught.value)
