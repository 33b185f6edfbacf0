"""What a run file asks of the device that it will run on."""

from collections.abc import Iterator

from penstock.config.errors import Problem
from penstock.loops.sections import TrainConfig
from penstock.optim.sections import SparseOptimizer
from penstock.runtime.world import World


def device_problems(train: TrainConfig | None) -> Iterator[Problem]:
    """What this process cannot do with its device; torch is asked for it only where the answer depends on it."""
    if train is None:
        return
    if train.sparse_optimizer is not None:
        yield from _table_problems(train.sparse_optimizer)
    if train.grad_scaler is not None and train.mixed_precision != "FP16":
        message = "scales losses of FP16 alone; set mixed_precision: FP16, or leave it out"
        yield Problem("train_config.grad_scaler", message)


def _table_problems(section: SparseOptimizer) -> Iterator[Problem]:
    device_type = "cpu"
    if section.needs_device():
        from penstock.distributed.groups import compute_device

        device_type = compute_device(World()).type
    yield from section.problems(device_type)
