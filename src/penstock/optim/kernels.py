"""Which optimizers of embedding tables can run where; read before anything is built, so without torch."""

from collections.abc import Iterator

from penstock.config.errors import Problem
from penstock.optim.sections.sparse import SparseOptimizer, WeightDecayMode

PATH = "train_config.sparse_optimizer"

ON_CPU = ("sgd_optimizer", "adagrad_optimizer", "rowwise_adagrad_optimizer", "adam_optimizer")
"""Those that run everywhere: adam on CPU by an update of our own (`row_adam`), the others by a fused kernel."""

ON_GPU_ALONE = {
    "lamb_optimizer": "adam_optimizer",
    "lars_sgd_optimizer": "sgd_optimizer",
    "partial_rowwise_adam_optimizer": "adam_optimizer",
    "partial_rowwise_lamb_optimizer": "adam_optimizer",
}
"""Those that have a kernel on GPU alone, and what comes nearest on CPU."""

NOWHERE = {"adadelta_optimizer": "adagrad_optimizer", "rmsprop_optimizer": "adam_optimizer"}
"""Those that no kernel does, and what comes nearest."""


def sparse_problems(section: SparseOptimizer, device_type: str) -> Iterator[Problem]:
    """Why the chosen optimizer cannot train tables on this kind of device ('cpu', 'cuda'), and what to use instead."""
    chosen = section.chosen("optimizer")
    if chosen is None:
        yield Problem(PATH, f"choose an optimizer: {', '.join(ON_CPU)}")
        return
    name, options = chosen
    if name in NOWHERE:
        message = f"no kernel updates embedding tables this way; use {NOWHERE[name]}"
        yield Problem(f"{PATH}.{name}", message)
    elif name in ON_GPU_ALONE and device_type == "cpu":
        message = f"has a kernel on GPU alone; on CPU use {ON_GPU_ALONE[name]}"
        yield Problem(f"{PATH}.{name}", message)
    elif name == "rowwise_adagrad_optimizer" and options.weight_decay:
        yield from _row_wise_decay(options.weight_decay, options.weight_decay_mode, device_type)


def needs_device(section: SparseOptimizer) -> bool:
    """Whether it depends on the kind of device if this section can be trained."""
    return list(sparse_problems(section, "cpu")) != list(sparse_problems(section, "cuda"))


def _row_wise_decay(decay: float, mode: WeightDecayMode, device_type: str) -> Iterator[Problem]:
    path = f"{PATH}.rowwise_adagrad_optimizer.weight_decay"
    if device_type == "cpu":
        yield Problem(path, f"is {decay}; the CPU kernel ignores it; remove it, or use adam_optimizer")
    elif mode is WeightDecayMode.NONE:
        yield Problem(
            path, f"is {decay}, but weight_decay_mode NONE ignores it; set L2 or DECOUPLE, or remove it"
        )
