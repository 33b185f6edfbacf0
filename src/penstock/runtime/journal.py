"""A file with one JSON object per line: append-only, readable while it grows, cut back when a run resumes."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Journal:
    """Appends records to a JSON-lines file; a kill of this process loses none that was written."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record. Numbers that are not finite become null, since JSON has none."""
        line = json.dumps({key: finite(value) for key, value in record.items()}, allow_nan=False)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def read(self) -> list[dict[str, Any]]:
        """All whole records; a last line that a kill left torn is passed over."""
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                records.append(json.loads(line))
            except json.JSONDecodeError:
                continue
        return records

    def cut_back(self, step: int) -> None:
        """Drop what was written after `step`, so that a resumed run does not tell it twice."""
        kept = [record for record in self.read() if record.get("step", 0) <= step]
        staging = self.path.with_suffix(".tmp")
        staging.write_text("".join(json.dumps(record) + "\n" for record in kept), encoding="utf-8")
        os.replace(staging, self.path)


def finite(value: Any) -> Any:
    """The same value with null for numbers that are not finite, since JSON has none."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return value
