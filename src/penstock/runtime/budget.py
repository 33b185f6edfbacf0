"""Bytes as a thing one must ask for.

The plan gives each stage its share before the start. A stage leases from its own share only, so that one stage
that waits can never be waiting for another: no deadlock by construction, and the sum of the shares is the limit.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import format_size


@dataclass(eq=False)
class Share:
    """The bytes of one stage: leased, returned, waited for."""

    name: str
    limit_bytes: int
    setting: str = "memory.limit"
    whole: "Share | None" = None
    """The share that this one is a part of: what is held here counts there too."""
    held_bytes: int = field(default=0, init=False)
    peak_bytes: int = field(default=0, init=False)
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)

    def acquire(self, num_bytes: int, give_up: Callable[[], bool] = lambda: False) -> bool:
        """Take bytes, waiting for this share's other holders. False when `give_up` said so before they came.

        `wake()` makes waiting threads ask `give_up` again.
        """
        if num_bytes > self.limit_bytes:
            raise BudgetExceeded(
                f"{self.name} needs {format_size(num_bytes)} at once but may hold {format_size(self.limit_bytes)}; "
                f"raise {self.setting}",
                self.setting,
            )
        with self._changed:
            while self.held_bytes + num_bytes > self.limit_bytes:
                if give_up():
                    return False
                self._changed.wait()
            self.held_bytes += num_bytes
            self.peak_bytes = max(self.peak_bytes, self.held_bytes)
        if self.whole is not None:
            self.whole.acquire(num_bytes)  # at once: all parts together are no larger
        return True

    def split(self, count: int) -> "list[Share]":
        """Equal parts of this share, for holders that must not wait for each other."""
        return [Share(self.name, self.limit_bytes // count, self.setting, whole=self) for _ in range(count)]

    def release(self, num_bytes: int) -> None:
        if self.whole is not None:
            self.whole.release(num_bytes)
        with self._changed:
            self.held_bytes -= num_bytes
            self._changed.notify_all()

    def wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    @contextmanager
    def lease(self, num_bytes: int) -> Iterator[None]:
        self.acquire(num_bytes)
        try:
            yield
        finally:
            self.release(num_bytes)


@dataclass(eq=False)
class MemoryBudget:
    """All bytes that may be given out, and who has how many."""

    limit_bytes: int
    shares: dict[str, Share] = field(default_factory=dict, init=False)

    @property
    def unshared_bytes(self) -> int:
        """What no stage has been given yet."""
        return self.limit_bytes - sum(share.limit_bytes for share in self.shares.values())

    @property
    def held_bytes(self) -> int:
        """What stages hold of their shares at this moment."""
        return sum(share.held_bytes for share in self.shares.values())

    def share(self, name: str, num_bytes: int, setting: str = "memory.limit") -> Share:
        """Give a stage its bytes; `setting` is the key of the run file to name when they are too few."""
        if name in self.shares:
            raise ValueError(f"stage '{name}' has its share already")
        if num_bytes > self.unshared_bytes:
            advice = "" if setting == "memory.limit" else f"lower {setting}, or "
            held = [f"{share.name} {format_size(share.limit_bytes)}" for share in self.shares.values()]
            raise BudgetExceeded(
                f"{name} needs {format_size(num_bytes)} but only {format_size(max(0, self.unshared_bytes))} of "
                f"{format_size(self.limit_bytes)} are left ({', '.join(held) or 'nobody holds any yet'}); "
                f"{advice}raise memory.limit",
                setting,
                "memory.limit",
            )
        self.shares[name] = Share(name, num_bytes, setting)
        return self.shares[name]
