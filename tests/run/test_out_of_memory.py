"""A batch for which memory does not suffice: one line that says what to change, and its rows in a file."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from penstock.config.errors import BudgetExceeded
from penstock.runtime.memory import MemoryMonitor
from penstock.training.failures import Failures
from tests.run.training_runs import trained

OF_CPU = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 1610612736 bytes. Error code 12"
OF_GPU = "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 15.77 GiB"

UNDER_A_LIMIT = """
import resource, sys
from pathlib import Path
from penstock.run.run_file import load_run
from penstock.run.train import train

class LessMemory:
    def on_log(self, step, metrics, control):
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + 96 * 2**20
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

train(load_run("run.yaml"), callbacks=[LessMemory()])
"""


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

    text = str(caught.value)
    start, _, end = text.partition(": 128TiB were asked for, ")
    assert start.startswith("step 1: memory ran out on a batch of 2 rows (rows 0 to 1 of clicks.parquet), ")
    assert start.endswith("B as read")
    taken, _, rest = end.partition("; ")
    assert taken.endswith("iB of memory.limit 8GiB were taken")
    assert rest == (
        "its rows are in run/out_of_memory/step-1.jsonl; lower data_config.batch_size, or the widths of "
        "tables and layers, then go on with --continue_train"
    )
    rows = [
        json.loads(line) for line in (desk.folder / "run/out_of_memory/step-1.jsonl").read_text().splitlines()
    ]
    assert [(row["row"], row["labels"], row["features"]["user"]) for row in rows] == [
        (0, {"click": 0}, [1]),
        (1, {"click": 1}, [2]),
    ]


def test_rows_that_cannot_be_written_are_told_too(desk):
    (desk.folder / "run").mkdir()
    desk.write("run/out_of_memory", "a file where the folder should be")

    with pytest.raises(
        BudgetExceeded, match=r"; its rows could not be written to run/out_of_memory/step-1\.jsonl: "
    ):
        trained(desk, own_loss("full_device"))


def test_batches_that_are_cut_by_cost_tell_their_cost(desk):
    by_cost = {"data_config.batch_cost_size": 8, "data_config.sample_cost_field": "item_id"}
    with pytest.raises(
        BudgetExceeded, match=r", its cost at most 8: .*; lower data_config\.batch_cost_size, "
    ):
        trained(desk, own_loss("full_device") | by_cost)


def test_a_device_that_is_full_tells_what_was_asked_for(desk):
    with pytest.raises(BudgetExceeded, match=r": 2\.5GiB were asked for, .* were taken; "):
        trained(desk, own_loss("full_device"))


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RuntimeError(OF_CPU), "1.5GiB were asked for, "),
        (torch.OutOfMemoryError(OF_GPU), "2.5GiB were asked for, "),
        (MemoryError(), ""),
        (RuntimeError("std::bad_alloc"), ""),
    ],
    ids=str,
)
def test_errors_that_mean_it(error, told):
    assert shortage(error).startswith(told)
    assert shortage(error).endswith(" of memory.limit 1GiB were taken")


def test_other_errors_do_not():
    assert shortage(RuntimeError("mat1 and mat2 shapes cannot be multiplied")) is None


def shortage(error):
    with MemoryMonitor(2**30) as monitor:
        return Failures(Path("run"), None, None, monitor, torch.device("cpu"), None).memory_shortage(error)


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

    done = subprocess.run(
        [sys.executable, "-c", UNDER_A_LIMIT],
        check=False,
        cwd=desk.folder,
        capture_output=True,
        text=True,
    )

    last = done.stderr.splitlines()[-1]
    assert "step 2: memory ran out on a batch of 8,192 rows (rows 8192 to 16383 of clicks.parquet), " in last
    assert "128MiB were asked for, " in last
    written = (desk.folder / "run/out_of_memory/step-2.jsonl").read_text().splitlines()
    assert len(written) == 8192
    assert json.loads(written[0])["features"]["price"] == pytest.approx(81.92)
