"""How many worker processes there are: as many as cores, tasks and memory allow.

Where memory is ample, all of them start at once. Else a few start, and what they take is measured when each of them has
written something; as long as there is room for more, their number doubles.
"""

import math
from dataclasses import dataclass

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB, format_size

_CORES_LEFT = 2
"""For the process that hands out tasks, and for whoever else is here."""
_BATCH_COPIES = 3
"""A batch that is filled, numbers that wait to be converted, and what is being written."""
_AMPLE = 4
"""Room for so many times what a worker should take is ample."""
_MARGIN_PARTS, _MARGIN_OF = 5, 4
"""A worker may take a quarter more than what was measured of others."""
_LEAST_WORKER_BYTES = 48 * MIB
"""An interpreter with NumPy and pyarrow, beside what it shares with others."""
_NEVER_REFUSED_BYTES = 16 * MIB
"""Batches that take so little are not what a limit is too low for."""
_SPARE_BYTES = 16 * MIB
"""A program does not take the same every time: so much more than it takes now is advised."""


@dataclass(frozen=True, slots=True)
class Room:
    """What there is for workers."""

    cores: int
    limit_bytes: int
    process_bytes: int
    """What this process takes, after it has made a first sample: a worker takes about as much, and its batches."""
    batch_bytes: int


@dataclass(frozen=True, slots=True)
class CrewSize:
    """With how many workers to begin, how many there may be, and what all may take."""

    start: int
    most: int
    limit_bytes: int

    def addition(self, num_workers: int, taken_bytes: int, worker_bytes: int) -> int:
        """How many more workers fit, when so many take so much and the largest of them takes `worker_bytes`.

        >>> CrewSize(start=1, most=10, limit_bytes=1000).addition(2, 400, 100)
        2
        """
        fitting = (self.limit_bytes - taken_bytes) // max(1, worker_bytes * _MARGIN_PARTS // _MARGIN_OF)
        return max(0, min(num_workers, self.most - num_workers, fitting))


def crew_size(wanted: int | None, num_tasks: int, room: Room) -> CrewSize:
    """At least one worker; `wanted` is what the run file says, None for as many as there are cores less 2."""
    most = min(max(1, room.cores - _CORES_LEFT) if wanted is None else wanted, max(1, num_tasks))
    worker_bytes = room.process_bytes + _BATCH_COPIES * room.batch_bytes
    ample = (room.limit_bytes - room.process_bytes) // (_AMPLE * worker_bytes)
    return CrewSize(max(1, min(most, ample)), most, room.limit_bytes)


def check_batch_fits(batch_size: int, room: Room, apart: bool) -> None:
    """Refuse batches that not even a single process can hold; `apart`: that is another one than this."""
    needed_bytes, left_bytes = _BATCH_COPIES * room.batch_bytes, _left_bytes(room, apart)
    if needed_bytes <= max(left_bytes, _NEVER_REFUSED_BYTES):
        return
    row_bytes = room.batch_bytes // batch_size
    raise BudgetExceeded(
        f"preprocessing.batch_size: filling, converting and writing {batch_size:,} samples of {format_size(row_bytes)} "
        f"each takes up to {format_size(needed_bytes)}, but memory.limit of {format_size(room.limit_bytes)} leaves "
        f"{format_size(left_bytes)} for it; {_advice(row_bytes, room, apart)}"
    )


def check_program_fits(room: Room, apart: bool) -> None:
    """Refuse a limit below what this program takes before it has begun; the one that is advised does for all of it."""
    if room.process_bytes >= room.limit_bytes:
        raise BudgetExceeded(
            f"memory.limit: is {format_size(room.limit_bytes)}, but the program alone takes "
            f"{format_size(room.process_bytes)}; raise it to {_enough(room, room.batch_bytes, apart)}"
        )


def _advice(row_bytes: int, room: Room, apart: bool) -> str:
    """A limit that does for the batches, and batches that do for the limit, or for one that has to be raised anyway."""
    enough = _enough(room, room.batch_bytes, apart)
    fitting = _left_bytes(room, apart) // (_BATCH_COPIES * row_bytes)
    if fitting:
        return f"set batch_size to {fitting}, or raise memory.limit to {enough}"
    return f"raise memory.limit to {enough}, or to {_enough(room, row_bytes, apart)} and set batch_size to 1"


def _others_bytes(room: Room, apart: bool) -> int:
    """What is taken beside batches."""
    return room.process_bytes + (_LEAST_WORKER_BYTES if apart else 0)


def _left_bytes(room: Room, apart: bool) -> int:
    return max(0, room.limit_bytes - _others_bytes(room, apart))


def _enough(room: Room, batch_bytes: int, apart: bool) -> str:
    enough_bytes = _others_bytes(room, apart) + _BATCH_COPIES * batch_bytes + _SPARE_BYTES
    return f"{math.ceil(enough_bytes / MIB)}MiB"
