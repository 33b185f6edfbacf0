"""What the parent, the template and the workers say to each other."""

from dataclasses import dataclass

from penstock.data.workers.arena import Region
from penstock.data.workers.transport import Span


@dataclass(frozen=True, slots=True)
class Setup:
    """Parent to template: whom to make. Descriptors are inherited under the same numbers."""

    work: bytes
    """The pickled `Work`."""

    arena: int
    arena_bytes: int
    connections: tuple[int, ...]
    """For each worker, its end of the connection with the parent."""

    stack_files: tuple[int, ...]
    """For each worker, where its stack is written to when it is asked for."""


@dataclass(frozen=True, slots=True)
class Started:
    """Template to parent: the workers run."""

    pids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NotLoaded:
    """Template to parent: the work cannot be loaded here."""

    error: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Template to parent: a worker is no more; `exit_code` is negative for a signal."""

    pid: int
    exit_code: int


@dataclass(frozen=True, slots=True)
class Task:
    """Parent to worker: a record batch is in this region."""

    number: int
    region: Region
    batch_bytes: int


@dataclass(frozen=True, slots=True)
class Done:
    """Worker to parent: the result is in the region too."""

    number: int
    spans: list[Span]
    seconds: float


@dataclass(frozen=True, slots=True)
class TooLarge:
    """Worker to parent: the result does not fit into the region."""

    number: int
    needed_bytes: int


@dataclass(frozen=True, slots=True)
class Failed:
    """Worker to parent: the function raised. `error` is the pickled exception where it can be pickled."""

    number: int
    error: bytes | None
    summary: str
    traceback: str


Reply = Done | TooLarge | Failed
