"""Where each row of the output goes, decided before the first is written: even files of even row groups."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.prep.rewrite.options import RewriteOptions
from penstock.readers.blocks import Shard


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """How many rows the files and their row groups have; sizes differ by at most one row."""

    num_rows: int
    num_files: int
    most_group_rows: int

    def files(self) -> Iterator[list[int]]:
        """For each file the rows of its row groups; a data set without rows is one file without row groups.

        >>> list(OutputLayout(num_rows=10, num_files=2, most_group_rows=3).files())
        [[3, 2], [3, 2]]
        """
        for index in range(self.num_files):
            start, end = Shard(index, self.num_files).bounds(self.num_rows)
            num_groups = -(-(end - start) // self.most_group_rows)
            bounds = [Shard(group, num_groups).bounds(end - start) for group in range(num_groups)]
            yield [group_end - group_start for group_start, group_end in bounds]


def plan_output(num_rows: int, row_bytes: int, output_bytes: int, options: RewriteOptions) -> OutputLayout:
    """The layout that the options ask for, from estimates of the bytes of a row and of all files."""
    num_files = options.num_files or max(1, round(output_bytes / options.file_bytes))
    return OutputLayout(
        num_rows=num_rows,
        num_files=max(1, min(num_files, num_rows)),
        most_group_rows=max(1, options.row_group_bytes // row_bytes),
    )
