"""What metrics hold in memory: what they need, what they can use, and keeping them within a share of a plan.

Sums are as large as they are. Metrics that keep rows hold fewer of them in memory where they are given less, and the
others on disk, or a smaller sample. A metric of one's own may be `Bounded` too; else it is not in the plan.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable


class MemoryNeeds(NamedTuple):
    """Bytes, with what working out the value takes for a moment."""

    least_bytes: int
    """With less it cannot work."""

    ample_bytes: int
    """With more it does nothing better."""


@runtime_checkable
class Bounded(Protocol):
    """A metric that tells what it needs, and keeps to what it is given."""

    def memory_needs(self, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
        """For so many rows with predictions of so many classes."""
        ...

    def hold_within(self, limit_bytes: int, num_rows: int) -> None:
        """Take no more than this, at least the need, for so many rows. To be called before the first row."""
        ...

    @property
    def held_bytes(self) -> int:
        """What it holds now."""
        ...

    @property
    def computing_bytes(self) -> int:
        """What it holds while its value is worked out from these rows."""
        ...


def needs_of(metric: Any, num_rows: int, num_classes: int = 1) -> MemoryNeeds:
    """The needs of a metric; one that does not tell is taken to need nothing."""
    return metric.memory_needs(num_rows, num_classes) if isinstance(metric, Bounded) else MemoryNeeds(0, 0)


def hold_within(metric: Any, limit_bytes: int, num_rows: int) -> None:
    """Bound a metric that can be bounded."""
    if isinstance(metric, Bounded):
        metric.hold_within(limit_bytes, num_rows)


def held_bytes(metric: Any) -> int:
    """What a metric holds, where it tells."""
    return metric.held_bytes if isinstance(metric, Bounded) else 0


def computing_bytes(metric: Any) -> int:
    """What a metric holds while its value is worked out, where it tells."""
    return metric.computing_bytes if isinstance(metric, Bounded) else 0


def divided(needs: Mapping[str, MemoryNeeds], total_bytes: int) -> dict[str, int]:
    """A share of all, by name: what each needs, and of the rest in the measure of what it could use beyond that."""
    spare = max(0, total_bytes - sum(need.least_bytes for need in needs.values()))
    wanted = sum(need.ample_bytes - need.least_bytes for need in needs.values())
    given = min(spare, wanted)
    return {
        name: need.least_bytes + (need.ample_bytes - need.least_bytes) * given // max(1, wanted)
        for name, need in needs.items()
    }
