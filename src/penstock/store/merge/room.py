"""Whether a disk has the room that a merge needs."""

import errno
import os
import shutil
from pathlib import Path

from penstock.config.errors import DataError
from penstock.config.sizes import format_size


def check_room(output_dir: Path, needed_bytes: int, staging: Path) -> None:
    """Refuse to begin what cannot end; what a killed merge has written already needs no room again."""
    if not os.access(_existing(output_dir), os.W_OK):
        raise DataError(
            f"{output_dir}: cannot be written to: {_existing(output_dir)} is read-only; choose another output_dir"
        )
    missing_bytes = needed_bytes - _allocated_bytes(staging)
    free_bytes = shutil.disk_usage(_existing(output_dir)).free
    if missing_bytes > free_bytes:
        raise DataError(
            f"{output_dir}: the disk has {format_size(free_bytes)} free but the merge needs "
            f"{format_size(missing_bytes)}, {format_size(missing_bytes - free_bytes)} more; free some, or choose "
            "an output_dir on another disk"
        )


def reserve(path: Path, num_bytes: int) -> None:
    """Make a file of that size whose room on disk nobody can take any more; its bytes stay if it is there."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        os.ftruncate(descriptor, num_bytes)
        if num_bytes:
            _allocate(descriptor, num_bytes)
    finally:
        os.close(descriptor)


def _allocate(descriptor: int, num_bytes: int) -> None:
    """Where the file system can."""
    try:
        os.posix_fallocate(descriptor, 0, num_bytes)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise


def _allocated_bytes(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _existing(folder: Path) -> Path:
    """The folder or the nearest one above it that is there."""
    folder = folder.absolute()
    while not folder.exists():
        folder = folder.parent
    return folder
