"""Who gets how many bytes when a Dataset is read.

Without `.memory(limit)` the reader gets what it can use, up to 512 MiB, and the whole may take what a run may take by
default. With it, shuffle and prefetch get what they ask for, and the reader what is left, as far as it can use it.
"""

from penstock.config.errors import BudgetExceeded, ConfigError
from penstock.config.sizes import MIB, format_size
from penstock.pipeline.dataset.chain import Chain
from penstock.readers.survey import Survey
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.limits import default_limit

READER_CAP_BYTES = 512 * MIB
_WINDOWS = 2
"""A column that is brought into its order exists twice: where there is but one, so does the window."""
_SLACK_BYTES = MIB
"""The bytes of a row are estimated, and the rows of a small window may be larger than the mean."""


def share_memory(chain: Chain, survey: Survey, num_shuffle_rows: int) -> MemoryBudget:
    """A budget with the shares 'reader', 'shuffle' and 'prefetch', or a BudgetExceeded that says who needs what."""
    budget = MemoryBudget(default_limit() if chain.memory_bytes is None else chain.memory_bytes)
    shuffle_bytes = 0
    if num_shuffle_rows:
        shuffle_bytes = _WINDOWS * num_shuffle_rows * survey.row_bytes + _SLACK_BYTES
    prefetch_bytes = chain.prefetch_bytes or 0
    rest = budget.limit_bytes - shuffle_bytes - prefetch_bytes
    if rest < survey.least_bytes:
        raise BudgetExceeded(_too_few(chain, survey, budget.limit_bytes, shuffle_bytes))
    cap = READER_CAP_BYTES if chain.memory_bytes is None else rest
    reader_bytes = max(survey.least_bytes, min(survey.ample_bytes, rest, cap))
    budget.share("shuffle", shuffle_bytes, setting="the buffer of .shuffle(buffer)")
    budget.share("prefetch", prefetch_bytes, setting="the bytes of .prefetch(num_bytes)")
    budget.share("reader", reader_bytes, setting="the limit of .memory(limit)")
    return budget


def shuffle_rows(chain: Chain, survey: Survey) -> int:
    """How many rows wait in the shuffle buffer: its bytes over those of a row; 0 without a shuffle."""
    if chain.shuffling is None:
        return 0
    num_rows = chain.shuffling.buffer_bytes // survey.row_bytes
    if num_rows < 2 <= survey.num_rows:
        raise ConfigError.at(
            "shuffle",
            f"a buffer of {format_size(chain.shuffling.buffer_bytes)} holds no two rows of {chain.source.name}; "
            f"a row takes {format_size(survey.row_bytes)}",
        )
    return max(1, min(num_rows, survey.num_rows))


def _too_few(chain: Chain, survey: Survey, limit_bytes: int, shuffle_bytes: int) -> str:
    needs = [f"reading {chain.source.name} needs {format_size(survey.least_bytes)}"]
    advice = ["raise the limit of .memory(limit)"]
    if shuffle_bytes:
        needs.append(f"shuffling {format_size(shuffle_bytes)} (a row may exist twice)")
        advice.append("lower the buffer of .shuffle(buffer)")
    if chain.prefetch_bytes:
        needs.append(f"prefetching {format_size(chain.prefetch_bytes)}")
    return (
        f"{', '.join(needs)}: more than the {format_size(limit_bytes)} that there are; {' or '.join(advice)}"
    )
