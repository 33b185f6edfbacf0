"""How many bytes this machine or container has, whichever is fewer."""

from pathlib import Path

import psutil

from penstock.config.sizes import MIB
from penstock.runtime.sections import MemorySection

CGROUP_FILES = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
DEFAULT_PARTS, DEFAULT_OF = 60, 100
"""The default limit is 60 of 100 parts of what there is: integers, so that it is the same on every machine."""


def memory_of_machine(cgroup_files: tuple[Path, ...] = CGROUP_FILES) -> int:
    """Bytes of the machine, or of the container when that has fewer."""
    total = int(psutil.virtual_memory().total)
    for file in cgroup_files:
        try:
            text = file.read_text().strip()
        except OSError:
            continue
        if text.isdecimal():
            total = min(total, int(text))
    return total


def default_limit() -> int:
    """The memory limit of a run that does not set one."""
    return memory_of_machine() * DEFAULT_PARTS // DEFAULT_OF


def limit_of(memory: MemorySection) -> int:
    """The memory limit of a run, in bytes."""
    return default_limit() if memory.limit is None else memory.limit


def memory_limit(given_bytes: int | None, process_bytes: int) -> int:
    """The limit of work on a whole data set: as given, or 512 MiB, or more where loaded libraries take most of it."""
    if given_bytes is not None:
        return given_bytes
    return max(512 * MIB, process_bytes + 384 * MIB)
