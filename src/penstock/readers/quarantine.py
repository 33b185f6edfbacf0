"""Rows that cannot be used: written aside with the reason, and left out; too many of them are an error.

Whoever finds a bad row puts it here. A reader gives such a row on, with nulls in place of what it could not read,
so that places, which count rows, stay right; whoever makes batches leaves it out.
"""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.readers.origin import locate


class Quarantine:
    """A file of JSON lines with one line per bad row. A row is written once, however often it is read.

    Without a path, rows are counted only.
    """

    def __init__(self, path: Path | None, limit: int, file_paths: Sequence[str]) -> None:
        self.path = path
        self.limit = limit
        self._file_paths = tuple(file_paths)
        self._row_ids: set[int] = set()
        self._sorted = np.empty(0, np.int64)
        self._lock = threading.Lock()
        if path is not None and path.exists():
            self._keep(_known_rows(path, self._file_paths))

    def __len__(self) -> int:
        return len(self._row_ids)

    def put(
        self,
        row_id: int,
        problem: str,
        *,
        column: str | None = None,
        value: object = None,
        row: object = None,
    ) -> None:
        """Write a row aside, with what is wrong and, where it is known, the row as it stands."""
        with self._lock:
            if row_id not in self._row_ids:
                self._put(row_id, problem, column, value, row)

    def _put(self, row_id: int, problem: str, column: str | None, value: object, row: object) -> None:
        file_index, row_number = locate(row_id)
        line = {
            "file": self._file_paths[file_index],
            "row": row_number,
            "column": column,
            "value": value,
            "problem": problem,
            "content": row,
        }
        if self.path is not None:
            _append(self.path, line)
        self._keep([row_id])
        if len(self) > self.limit:
            where = "" if self.path is None else f"; see {self.path}"
            raise DataError(
                f"{line['file']}: row {row_number}: {problem}; with it {len(self):,} rows cannot be used, more than "
                f"data_config.bad_rows_limit ({self.limit:,}){where}"
            )

    def bad(self, row_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each row whether it is held here."""
        return np.isin(row_ids, self._sorted)

    def _keep(self, row_ids: Sequence[int]) -> None:
        self._row_ids.update(row_ids)
        self._sorted = np.array(sorted(self._row_ids), np.int64)


def _append(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line, default=str, ensure_ascii=False) + "\n")


def _known_rows(path: Path, file_paths: Sequence[str]) -> list[int]:
    """The rows that an earlier part of the run wrote aside; a torn last line was not counted then either."""
    places = {file: index for index, file in enumerate(file_paths)}
    found: list[dict[str, Any]] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return [(places[entry["file"]] << 40) | entry["row"] for entry in found if entry["file"] in places]
