"""How much memory work on a whole data set may take where nobody said."""

from penstock.config.sizes import MIB

_DEFAULT_BYTES = 512 * MIB
_LEAST_WORKING_BYTES = 384 * MIB


def memory_limit(told_bytes: int | None, process_bytes: int) -> int:
    """The limit of the whole process: as told, or 512 MiB, or more where libraries that were loaded take most of it."""
    if told_bytes is not None:
        return told_bytes
    return max(_DEFAULT_BYTES, process_bytes + _LEAST_WORKING_BYTES)
