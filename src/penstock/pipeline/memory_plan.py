"""Who gets how many bytes of the limit, decided before anything is allocated.

What the process takes by being there and what the model needs come first, since neither can be made smaller;
the stages of the data path share the rest.
"""

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.limits import default_limit
from penstock.runtime.sections import MemorySection

PREFETCH_CAP_BYTES = 64 * MIB
READER_CAP_BYTES = 512 * MIB
SHUFFLE_COPIES = 2
"""A window of rows and its permuted copy exist at once."""


def limit_of(memory: MemorySection) -> int:
    """The limit of a run in bytes."""
    return memory.limit if memory.limit is not None else default_limit()


def share_model(budget: MemoryBudget, process_bytes: int, model_bytes: int, step_bytes: int) -> None:
    """Shares of what cannot be made smaller."""
    if process_bytes > budget.limit_bytes:
        raise BudgetExceeded(
            f"memory.limit: is {format_size(budget.limit_bytes)}, but python, torch and torchrec take "
            f"{format_size(process_bytes)} just by being imported; raise it"
        )
    budget.share("process", process_bytes)
    budget.share("model", model_bytes, setting="embedding sizes in feature_configs")
    budget.share("step", step_bytes, setting="data_config.batch_size")


def share_data_path(
    budget: MemoryBudget,
    *,
    shuffle_bytes: int = 0,
    prefetch_bytes: int | None = None,
    evaluates: bool = False,
) -> None:
    """Shares of the stages that carry rows; an eighth of what is left stays free.

    A run that evaluates on the way reads two data sets at once, so that evaluation has shares of its own.
    """
    if shuffle_bytes:
        budget.share("shuffle", SHUFFLE_COPIES * shuffle_bytes, setting="data_config.shuffle_buffer")
    streams = ("", "evaluation ") if evaluates else ("",)
    rest = budget.unshared_bytes * 7 // 8 // len(streams)
    for stream in streams:
        prefetch = prefetch_bytes if prefetch_bytes is not None else min(PREFETCH_CAP_BYTES, rest // 4)
        budget.share(f"{stream}prefetch", prefetch, setting="data_config.prefetch")
        budget.share(f"{stream}reader", max(0, min(READER_CAP_BYTES, rest - prefetch)))
