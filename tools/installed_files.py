"""Is a package whole on disk? Compares the files with what pip recorded when it installed them.

A version number alone does not tell: a killed pip leaves a version without files, and a deleted folder
leaves one too. Sizes are compared at every call (20,000 files take about a third of a second), contents
only when asked.
"""

import base64
import csv
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lock_file import Pin, normalized


@dataclass(frozen=True)
class Damage:
    """Why a package has to be installed again."""

    pin: Pin
    problem: str
    is_torn: bool = False
    """Something of it is there, but not all: pip's own bookkeeping cannot be trusted."""

    def __str__(self) -> str:
        return f"{self.pin.name} {self.problem}"


class SitePackages:
    """The folder that packages are installed into."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._records: dict[str, list[Path]] = {}
        for path in sorted(folder.glob("*.dist-info")):
            name = path.stem.rpartition("-")[0]
            self._records.setdefault(normalized(name), []).append(path)

    def records_of(self, name: str) -> list[Path]:
        """The dist-info folders of a package: one when it is installed, several when something went wrong."""
        return self._records.get(normalized(name), [])

    def damages(self, pins: list[Pin], compare_contents: bool = False) -> list[Damage]:
        """Every pin that is absent, torn, or there in another version."""
        found = (self._damage(pin, compare_contents) for pin in pins)
        return [damage for damage in found if damage is not None]

    def leftovers(self) -> Iterator[Path]:
        """What an interrupted pip put aside and never removed; pip warns about it ever after."""
        return self.folder.glob("~*")

    def _damage(self, pin: Pin, compare_contents: bool) -> Damage | None:
        records = self.records_of(pin.name)
        if not records:
            return Damage(pin, "is missing")
        if len(records) > 1:
            return Damage(pin, f"is there {len(records)} times", is_torn=True)
        installed_version = records[0].stem.rpartition("-")[2]
        if installed_version != pin.version:
            return Damage(pin, f"is {installed_version}, not {pin.version}")
        bad_file = self.first_bad_file(records[0], compare_contents)
        return None if bad_file is None else Damage(pin, f"is torn at {bad_file}", is_torn=True)

    def first_bad_file(self, record_folder: Path, compare_contents: bool = False) -> str | None:
        """The first file of a package that is not as it was installed."""
        record = record_folder / "RECORD"
        if not record.is_file():
            return f"{record_folder.name}/RECORD"
        with record.open(newline="") as rows:
            for name, digest, size in csv.reader(rows):
                if size and not _is_whole(self.folder / name, int(size), digest if compare_contents else ""):
                    return name
        return None


def _is_whole(path: Path, size: int, digest: str) -> bool:
    try:
        if path.stat().st_size != size:
            return False
        return not digest.startswith("sha256=") or _sha256(path) == digest.removeprefix("sha256=")
    except OSError:
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
