"""How many worker processes there are: as many as cores, tasks and memory allow."""

from dataclasses import dataclass

from penstock.config.sizes import format_size

_CORES_LEFT = 2
"""For the process that hands out tasks, and for whoever else is here."""
_BATCH_COPIES = 3
"""A batch that is filled, numbers that wait to be converted, and what is being written."""


@dataclass(frozen=True, slots=True)
class CrewSize:
    """How many workers, and why not more."""

    count: int
    reason: str | None = None
    """Why there are fewer than wanted."""


@dataclass(frozen=True, slots=True)
class Room:
    """What there is for workers."""

    cores: int
    limit_bytes: int
    process_bytes: int
    """What this process takes, measured after it has made a sample: a worker takes as much, and its batches."""
    batch_bytes: int

    @property
    def worker_bytes(self) -> int:
        """What one worker takes."""
        return self.process_bytes + _BATCH_COPIES * self.batch_bytes


def crew_size(wanted: int | None, num_tasks: int, room: Room) -> CrewSize:
    """At least one worker; `wanted` is what the run file says, None for as many as there are cores less 2.

    >>> crew_size(None, 100, Room(cores=8, limit_bytes=1000, process_bytes=100, batch_bytes=0))
    CrewSize(count=6, reason=None)
    """
    asked = min(max(1, room.cores - _CORES_LEFT) if wanted is None else wanted, max(1, num_tasks))
    fitting = max(1, (room.limit_bytes - room.process_bytes) // room.worker_bytes)
    if asked <= fitting:
        return CrewSize(asked)
    return CrewSize(
        fitting,
        f"{asked} worker processes of {format_size(room.worker_bytes)} each do not fit into memory.limit "
        f"({format_size(room.limit_bytes)}): going on with {fitting}",
    )
