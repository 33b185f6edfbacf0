"""What belongs together: the batch files of a folder, or the files of a store.

`manifest.json` is written last. A folder of batch files without one is not finished; a store without one is none.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from penstock.config.errors import DataError
from penstock.store.batch_file.files import read_header
from penstock.store.batch_file.header import BatchRecord
from penstock.store.damage import DamagedFile
from penstock.store.documents import read_document, write_document
from penstock.store.schema import StoreSchema

MANIFEST_NAME = "manifest.json"
PREPARATION_NAME = "preparation.json"
"""What a preparation writes first of all."""
BATCHES_KIND = "penstock batches"
BATCHES_VERSION = 1


@dataclass(frozen=True)
class InputRecord:
    """A raw file as it was when it was read."""

    path: str
    num_bytes: int
    checksum: int
    modified_ns: int | None = None
    """When it was last written; a store may not say."""
    num_samples: int = 0
    """What came of it."""


@dataclass(frozen=True)
class Manifest:
    """A folder of batch files: what they were made of, and what is in them."""

    inputs: tuple[InputRecord, ...]
    batches: tuple[BatchRecord, ...]
    """In the order in which they are merged."""
    schema: StoreSchema
    settings: Mapping[str, Any]
    """Those of the run file that decide what is in the batch files."""

    @property
    def num_samples(self) -> int:
        """Of all batch files."""
        return sum(batch.num_samples for batch in self.batches)

    def write(self, directory: Path) -> None:
        """Write `manifest.json`; everything it lists must be there."""
        body = {
            "num_samples": self.num_samples,
            "schema": self.schema.as_document(),
            "settings": dict(self.settings),
            "inputs": [asdict(record) for record in self.inputs],
            "batches": [asdict(record) for record in self.batches],
        }
        write_document(directory / MANIFEST_NAME, BATCHES_KIND, BATCHES_VERSION, body)

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The manifest of a folder; DataError says why there is none."""
        absent = "there is none: the batch files are not finished; run penstock prep"
        path = directory / MANIFEST_NAME
        try:
            body = read_document(path, BATCHES_KIND, BATCHES_VERSION, absent)
        except DamagedFile as error:
            if not (directory / PREPARATION_NAME).exists():
                raise
            raise DataError(f"{error.problem}; run penstock prep, which writes it again") from error
        return cls(
            inputs=tuple(InputRecord(**record) for record in body["inputs"]),
            batches=tuple(BatchRecord(**record) for record in body["batches"]),
            schema=StoreSchema.from_document(body["schema"]),
            settings=body["settings"],
        )

    def difference(
        self, inputs: Sequence[InputRecord], settings: Mapping[str, Any], schema: StoreSchema | None = None
    ) -> str | None:
        """The first thing that is no longer as it was, in one line; `schema` is one that was declared."""
        differences = (_settings_difference(self.settings, settings), _inputs_difference(self.inputs, inputs))
        found = next((difference for difference in differences if difference), None)
        return found or (schema.difference(self.schema) if schema else None)

    def check(self, directory: Path) -> None:
        """Refuse a folder whose batch files are not those of the manifest; only headers are read."""
        problem = next(self.problems(directory), None)
        if problem is not None:
            raise DataError(f"{problem}; run penstock prep again")

    def problems(self, directory: Path) -> Iterator[str]:
        """One line for each batch file that is missing or another."""
        for batch in self.batches:
            path = directory / batch.name
            if not path.exists():
                yield f"{path}: is missing, but {MANIFEST_NAME} lists it"
                continue
            try:
                record = read_header(path).record
            except DataError as error:
                yield str(error)
                continue
            if record != batch:
                yield f"{path}: is not the file that {MANIFEST_NAME} lists: {_record_difference(batch, record)}"


def is_unfinished(intermediate_dir: Path) -> bool:
    """Whether its batch files are of a preparation that runs still, or was stopped."""
    return (intermediate_dir / PREPARATION_NAME).exists() and not (intermediate_dir / MANIFEST_NAME).exists()


def check_finished(intermediate_dir: Path) -> None:
    """Refuse batch files of a preparation that has not ended."""
    if is_unfinished(intermediate_dir):
        raise DataError(
            f"{intermediate_dir}: its batch files are not finished; run penstock prep, which goes on with them"
        )


def _settings_difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    for key in {**old, **new}:
        if old.get(key) != new.get(key):
            return f"{key} was {json.dumps(old.get(key))} and is {json.dumps(new.get(key))}"
    return None


def _inputs_difference(old: Sequence[InputRecord], new: Sequence[InputRecord]) -> str | None:
    old_by_path = {record.path: record for record in old}
    new_by_path = {record.path: record for record in new}
    for path, record in new_by_path.items():
        known = old_by_path.get(path)
        if known is None:
            return f"input {path} is new"
        if (known.num_bytes, known.checksum) != (record.num_bytes, record.checksum):
            return f"input {path} has changed"
    for path in old_by_path:
        if path not in new_by_path:
            return f"input {path} is gone"
    return None if list(old_by_path) == list(new_by_path) else "the order of inputs has changed"


def _record_difference(listed: BatchRecord, found: BatchRecord) -> str:
    for what in ("num_samples", "num_bytes", "checksum"):
        if getattr(listed, what) != getattr(found, what):
            return f"{what} is {getattr(found, what)}, not {getattr(listed, what)}"
    return "its name differs"
