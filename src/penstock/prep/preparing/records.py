"""What is known of a task that is done: kept beside its batch files, so that nobody does it again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from penstock.config.errors import DataError
from penstock.readers.batch_files import read_header
from penstock.readers.store_manifest import BatchRecord, InputRecord, read_document, write_document

TASKS_FOLDER = "tasks"
_KIND = "penstock task"
_VERSION = 1


@dataclass(frozen=True)
class TaskRecord:
    """A task that is done."""

    number: int
    inputs: tuple[InputRecord, ...]
    batches: tuple[BatchRecord, ...]
    left_out: Mapping[str, str]
    """Files of which nothing is there, and why."""
    largest_errors: Mapping[str, float]
    """Of rounding to float16, by array."""
    nan_samples: int = 0
    """Those with features that are no numbers (NaN)."""

    @property
    def num_samples(self) -> int:
        """In its batch files."""
        return sum(batch.num_samples for batch in self.batches)

    @property
    def num_bytes(self) -> int:
        """Of its batch files."""
        return sum(batch.num_bytes for batch in self.batches)

    def save(self, folder: Path) -> None:
        """Write it; it appears when it is whole."""
        write_document(record_path(folder, self.number), _KIND, _VERSION, asdict(self))

    @classmethod
    def load(cls, folder: Path, number: int) -> Self | None:
        """What was saved; None where the task is not done."""
        try:
            body = read_document(record_path(folder, number), _KIND, _VERSION, absent="is not there")
        except DataError:
            return None
        return cls(
            body["number"],
            tuple(InputRecord(**entry) for entry in body["inputs"]),
            tuple(BatchRecord(**entry) for entry in body["batches"]),
            body["left_out"],
            body["largest_errors"],
            body.get("nan_samples", 0),
        )

    def damage(self, folder: Path) -> str | None:
        """What is wrong with its batch files, by their sizes and headers; None: nothing."""
        for batch in self.batches:
            path = folder / batch.name
            try:
                if read_header(path).record != batch:
                    return f"{path}: is not the file that was written"
            except DataError as error:
                return str(error)
        return None


def record_path(folder: Path, number: int) -> Path:
    """The file of a task's record."""
    return folder / TASKS_FOLDER / f"task_{number:05d}.json"
