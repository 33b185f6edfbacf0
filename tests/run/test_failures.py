"""Batches that move nothing: a loss that is not finite, or not enough memory."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from penstock.config.errors import BudgetExceeded, DataError
from penstock.runtime.memory import MemoryMonitor
from penstock.training.failures import Failures
from tests.run.training_runs import trained

UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
from penstock.run.run_config import load_run
from penstock.run.train import train

class LessMemory:
    def on_log(self, step, metrics, control):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 96 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

train(load_run("run.yaml"), callbacks=[LessMemory()])
"""


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
    return {"model_config.losses": [{"custom_loss": {"import_path": f"{__name__}:{name}"}}]}


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


@pytest.mark.parametrize(
    ("error", "is_shortage"),
    [
        (MemoryError(), True),
        (RuntimeError("std::bad_alloc"), True),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
    ids=str,
)
def test_errors_that_mean_it(error, is_shortage):
    with MemoryMonitor(2**30) as monitor:
        failures = Failures(Path("run"), None, None, monitor, torch.device("cpu"), None)
        shortage = failures.memory_shortage(error)

    assert str(shortage).endswith(" of memory.limit 1GiB were taken") is is_shortage


@pytest.mark.slow
def test_a_process_whose_memory_is_bounded_ends_with_the_line_and_readable_rows(desk):
    rows = np.arange(16_384)
    columns = {"user_id": rows % 100, "item_id": rows % 100, "price": rows / 100, "click": rows % 2}
    pq.write_table(pa.table(columns), desk.folder / "clicks.parquet")
    desk.write_run(
        ("batch_size: 4", "batch_size: 8192"),
        ("hidden_units: [4]", "hidden_units: [4096]"),
        ("num_epochs: 1", "num_epochs: 3\n  log_step_count_steps: 1"),
    )

    command = [sys.executable, "-c", UNDER_A_LIMIT]
    done = subprocess.run(command, check=False, cwd=desk.folder, capture_output=True, text=True)

    last = done.stderr.splitlines()[-1]
    assert "step 2: memory ran out on a batch of 8,192 rows (rows 8192 to 16383 of clicks.parquet), " in last
    assert "128MiB were asked for, " in last
    written = (desk.folder / "run/out_of_memory/step-2.jsonl").read_text().splitlines()
    assert len(written) == 8192
    assert json.loads(written[0])["features"]["price"] == pytest.approx(81.92)


def test_a_run_past_its_memory_limit_leaves_a_checkpoint_and_a_report(desk, monkeypatch):
    monkeypatch.setattr("penstock.runtime.memory.MemoryMonitor.must_stop", lambda _: True)

    with pytest.raises(BudgetExceeded, match=r"step \d is saved, continue with --continue_train"):
        trained(desk)

    assert (desk.folder / "run" / "report.html").exists()
