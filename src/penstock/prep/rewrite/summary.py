"""What was written: told to the user, and kept beside the files."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from penstock.config.sizes import format_size

SUMMARY_NAME = "_rewrite.json"
"""Readers of folders leave out names that begin with an underscore."""


@dataclass(frozen=True, slots=True)
class RewriteSummary:
    """The result of a rewrite."""

    num_rows: int
    checksum: str
    """Sum of the hashes of all rows: equal for the same rows in any order."""
    num_files: int
    num_row_groups: int
    rows_per_row_group: int
    bytes_read: int
    bytes_written: int
    compression: str
    seed: int | None
    """None: the rows stand in the order of the input."""
    verified: bool
    """Whether the written files were read again."""
    inputs: Sequence[str]

    def describe(self) -> str:
        """A few lines for the user."""
        order = "in the order of the input" if self.seed is None else f"shuffled with seed {self.seed}"
        groups = f"{self.num_row_groups:,} of about {self.rows_per_row_group:,} rows"
        size = f"{format_size(self.bytes_written)} ({self.compression}), was {format_size(self.bytes_read)}"
        checked = "all rows read back" if self.verified else "rows read and written agree"
        lines = [
            f"{self.num_rows:,} rows {order}",
            f"  files: {self.num_files:,}, row groups: {groups}",
            f"  size: {size}",
            f"  checksum: {self.checksum} ({checked})",
        ]
        return "\n".join(lines)

    def save(self, folder: Path) -> None:
        """Write it beside the files."""
        (folder / SUMMARY_NAME).write_text(json.dumps(asdict(self), indent=2) + "\n")
