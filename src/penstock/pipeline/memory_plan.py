"""Who gets how many bytes of the limit, decided before anything is allocated.

What the process takes by being there and what the model needs come first, since neither can be made smaller;
the stages of the data path share the rest.
"""

from collections.abc import Mapping

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size
from penstock.readers.survey import Survey
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.limits import default_limit
from penstock.runtime.sections import MemorySection

PREFETCH_CAP_BYTES = 64 * MIB
EVALUATION = "evaluation "
"""In front of the shares of a run's evaluation data."""
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
    streams: Mapping[str, Survey],
    *,
    shuffle_bytes: int = 0,
    prefetch_bytes: int | None = None,
) -> None:
    """Shares of the stages that carry rows; an eighth of what is left stays free.

    `streams` are the data sets that are read at once, by the word in front of the names of their shares: "" and, for
    a run that evaluates on the way, EVALUATION. A reader gets what it can use, and never less than it needs.
    """
    if shuffle_bytes:
        budget.share("shuffle", SHUFFLE_COPIES * shuffle_bytes, setting="data_config.shuffle_buffer")
    rest = max(0, budget.unshared_bytes) * 7 // 8 // len(streams)
    for stream, survey in streams.items():
        prefetch = (
            prefetch_bytes if prefetch_bytes is not None else max(1, min(PREFETCH_CAP_BYTES, rest // 4))
        )
        budget.share(f"{stream}prefetch", prefetch, setting="data_config.prefetch")
        reader = max(survey.least_bytes, min(survey.ample_bytes, rest - prefetch))
        budget.share(f"{stream}reader", reader)
