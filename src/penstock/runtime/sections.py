"""The memory section: how much a run may use, and what happens when it uses more."""

from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator

from penstock.config.section import Section
from penstock.config.sizes import MIB, ByteSize


class OnExceed(StrEnum):
    """What happens when the measured memory passes the limit."""

    stop = "stop"
    warn = "warn"


def _enough_to_start(num_bytes: int | None) -> int | None:
    if num_bytes is not None and num_bytes < 16 * MIB:
        raise ValueError(f"is {num_bytes} bytes; a run needs at least 16MiB (write sizes as 4GiB, 512MiB)")
    return num_bytes


class MemorySection(Section):
    """How much memory a run may use, all its processes together."""

    limit: Annotated[ByteSize | None, AfterValidator(_enough_to_start)] = None
    """Bytes; absent: 60 % of what the container or the machine has."""

    monitor: bool = True
    """Measure the process tree while it runs."""

    on_exceed: OnExceed = OnExceed.stop
    """Save and stop, or only warn, when more than the limit was measured."""
