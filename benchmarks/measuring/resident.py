"""What a process has had in memory, as the system counts it."""

from pathlib import Path

from penstock.config.sizes import KIB


def resident_peak_bytes() -> int:
    """The most that this process has had resident; not, as `ru_maxrss` tells, also the one that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * KIB for line in lines if line.startswith("VmHWM"))
