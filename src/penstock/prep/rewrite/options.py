"""How a data set is rewritten."""

from dataclasses import dataclass

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.config.sizes import KIB, MIB, format_size

COMPRESSIONS = ("zstd", "snappy", "none")
_LEAST_ROW_GROUP_BYTES = 64 * KIB
_LEAST_FILE_BYTES = 64 * KIB


@dataclass(frozen=True, slots=True)
class RewriteOptions:
    """Order, sizes and memory; checked when made, so that nothing starts with a wrong one."""

    shuffle: bool = False
    seed: int = 0
    num_files: int | None = None
    """None: as many as `file_bytes` asks for."""
    file_bytes: int = 256 * MIB
    """About the size of a file on disk, where `num_files` does not say how many there are."""
    row_group_bytes: int = 32 * MIB
    """About what a row group takes in memory."""
    compression: str = "zstd"
    memory_bytes: int | None = None
    """Of the whole process; None: 512 MiB, and more where the process is large already."""
    verify: bool = False
    """Read the written files again and compare all rows."""

    def __post_init__(self) -> None:
        if self.compression not in COMPRESSIONS:
            raise ConfigError(
                f"--compression: there is no '{self.compression}'; {hint(self.compression, COMPRESSIONS)}"
            )
        if self.num_files is not None and self.num_files < 1:
            raise ConfigError(f"--files is {self.num_files}; it must be at least 1")
        _check_least("--row-group", self.row_group_bytes, _LEAST_ROW_GROUP_BYTES)
        _check_least("--file-size", self.file_bytes, _LEAST_FILE_BYTES)


def _check_least(option: str, num_bytes: int, least_bytes: int) -> None:
    if num_bytes < least_bytes:
        raise ConfigError(
            f"{option} is {format_size(num_bytes)}; it must be at least {format_size(least_bytes)}"
        )
