"""Raw files in tasks: what one process does at a stretch, and what is kept or repeated as a whole.

The tasks depend on the files and their sizes alone, never on how many processes there are: the same files give the
same batch files everywhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.config.sizes import KIB, MIB
from penstock.readers.files import DataFile

_WANTED_TASKS = 256
"""Enough that many processes end at about the same time, and that little is lost when one is killed."""
_LEAST_TASK_BYTES = 64 * KIB
_MOST_TASK_BYTES = 64 * MIB


@dataclass(frozen=True, slots=True)
class Task:
    """Some raw files behind each other; their samples go to batch files that bear the task's number."""

    number: int
    files: tuple[DataFile, ...]

    @property
    def name(self) -> str:
        """As in messages and the names of files."""
        return f"task_{self.number:05d}"

    def batch_name(self, batch: int, suffix: str) -> str:
        """The name of one of its batch files."""
        return f"{self.batch_prefix}{batch:05d}{suffix}"

    @property
    def batch_prefix(self) -> str:
        """What the names of all its batch files begin with."""
        return f"batch_{self.number:05d}_"


def make_tasks(files: Sequence[DataFile]) -> list[Task]:
    """Group files that follow each other by their bytes; a large one is a task by itself."""
    total_bytes = sum(file.size_bytes for file in files)
    task_bytes = min(max(total_bytes // _WANTED_TASKS, _LEAST_TASK_BYTES), _MOST_TASK_BYTES)
    return [Task(number, group) for number, group in enumerate(_groups(files, task_bytes))]


def same_tasks(files: Sequence[DataFile], paths: Sequence[Sequence[str]]) -> list[Task]:
    """The tasks that were made before, of the same files; one that was not done may have another size by now."""
    by_path = {file.path: file for file in files}
    return [Task(number, tuple(by_path[path] for path in group)) for number, group in enumerate(paths)]


def _groups(files: Sequence[DataFile], most_bytes: int) -> Iterator[tuple[DataFile, ...]]:
    group: list[DataFile] = []
    num_bytes = 0
    for file in files:
        if group and num_bytes + file.size_bytes > most_bytes:
            yield tuple(group)
            group, num_bytes = [], 0
        group.append(file)
        num_bytes += file.size_bytes
    if group:
        yield tuple(group)
