"""What happens to a record that cannot be used: it is an error, or it goes to quarantine."""

from dataclasses import dataclass
from typing import Protocol

from penstock.config.errors import DataError
from penstock.readers.files import DataFile
from penstock.readers.origin import row_ids
from penstock.readers.quarantine import Quarantine
from penstock.readers.text.record_index import RecordIndex
from penstock.readers.tfrecord.framing import offset_of
from penstock.readers.tfrecord.problems import UnusableRecord


class Refuse(Protocol):
    """Takes notice of a record of a file, and of the feature that is meant; raises if reading cannot go on."""

    def __call__(self, bad: UnusableRecord, file_index: int, row: int, feature: str | None) -> None: ...


@dataclass(frozen=True, slots=True)
class Refusal:
    """Errors with file, record, byte and feature, unless there is a quarantine for records."""

    files: tuple[DataFile, ...]
    indexes: tuple[RecordIndex, ...]
    quarantine: Quarantine | None = None

    def __call__(self, bad: UnusableRecord, file_index: int, row: int, feature: str | None) -> None:
        """As `Refuse` says; where the next record begins is unknown after a bad frame, so that nothing helps."""
        if self.quarantine is not None and not bad.is_frame:
            self.quarantine.put(row_ids(file_index, row, 1)[0].as_py(), bad.problem, column=feature)
            return
        file = self.files[file_index]
        place = f"{file.path}: record {row} at byte {offset_of(file, self.indexes[file_index], row)}"
        subject = "" if feature is None else f"feature '{feature}': "
        raise DataError(f"{place}: {subject}{bad.problem}") from bad


def pass_over(bad: UnusableRecord, file_index: int, row: int, feature: str | None) -> None:
    """Take no notice: for looking at records before they are read."""
