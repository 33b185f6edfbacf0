"""Who gets how many bytes when a Dataset is read.

Without `.memory(limit)` the reader gets what it can use, up to 512 MiB, and the whole may take what a run may take by
default. With it, shuffle and prefetch get what they ask for, and the reader what is left, as far as it can use it.
"""

from collections.abc import Mapping

from penstock.config.errors import BudgetExceeded, ConfigError
from penstock.config.sizes import MIB, format_size
from penstock.pipeline.dataset.chain import ByCost, Chain
from penstock.pipeline.memory_plan import shuffle_bytes_of
from penstock.readers.survey import Survey
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import default_limit

READER_CAP_BYTES = 512 * MIB
_CUT_CAP_BYTES = 64 * MIB
_SLACK_BYTES = MIB
"""The bytes of a row are estimated, and the rows of a small window may be larger than the mean."""
_SETTINGS = {
    "reader": "the limit of .memory(limit)",
    "shuffle": "the buffer of .shuffle(buffer)",
    "prefetch": "the bytes of .prefetch(num_bytes)",
    "cut": "max_rows of .batch",
}


def share_memory(chain: Chain, survey: Survey, num_shuffle_rows: int) -> MemoryBudget:
    """A budget with a share for each stage that holds rows, or a BudgetExceeded that says who needs what."""
    budget = MemoryBudget(default_limit() if chain.memory_bytes is None else chain.memory_bytes)
    needs = {"reader": survey.least_bytes}
    if num_shuffle_rows:
        needs["shuffle"] = shuffle_bytes_of(survey, num_shuffle_rows)
    if chain.prefetch_bytes is not None:
        needs["prefetch"] = chain.prefetch_bytes
    if isinstance(chain.cut, ByCost):
        needs["cut"] = _SLACK_BYTES
    rest = budget.limit_bytes - sum(needs.values())
    if rest < 0:
        raise BudgetExceeded(_too_few(chain, needs, budget.limit_bytes))
    if "cut" in needs:
        more = min(rest // 4, _CUT_CAP_BYTES)
        needs["cut"], rest = needs["cut"] + more, rest - more
    most_bytes = survey.ample_bytes if chain.memory_bytes else min(survey.ample_bytes, READER_CAP_BYTES)
    needs["reader"] = max(needs["reader"], min(most_bytes, needs["reader"] + rest))
    for name, num_bytes in needs.items():
        budget.share(name, num_bytes, setting=_SETTINGS[name])
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
            f"a row takes {format_size(survey.row_bytes)}, and the buffer is in bytes",
        )
    return max(1, min(num_rows, survey.num_rows))


def _too_few(chain: Chain, needs: Mapping[str, int], limit_bytes: int) -> str:
    words = {"reader": f"reading {chain.source.name} needs", "shuffle": "shuffling"}
    parts = [f"{words.get(name, name)} {format_size(num_bytes)}" for name, num_bytes in needs.items()]
    advice = "raise the limit of .memory(limit)"
    if "shuffle" in needs:
        advice += " or lower the buffer of .shuffle(buffer)"
    return f"{', '.join(parts)}: more than the {format_size(limit_bytes)} that there are; {advice}"
