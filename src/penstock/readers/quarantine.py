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
from penstock.readers.stream import ids_of_rows, locate


class Quarantine:
    """A file of JSON lines with one line per bad row. A row is written once, however often it is read.

    Without a path, rows are counted only.
    """

    def __init__(self, path: Path | None, limit: int, file_paths: Sequence[str]) -> None:
        self.path = path
        self.limit = limit
        self._file_paths = tuple(file_paths)
        self._row_ids: set[int] = set()
        self._known = np.empty(0, np.int64)
        self._lock = threading.Lock()
        if path is not None and path.exists():
            self._row_ids.update(_known_rows(path, self._file_paths))

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
                self._write(row_id, problem, column, value, row)
        if len(self) > self.limit:
            file_index, row_number = locate(row_id)
            where = "" if self.path is None else f"; see {self.path}"
            raise DataError(
                f"{self._file_paths[file_index]}: row {row_number}: {problem}; with it {len(self):,} rows cannot be "
                f"used, more than data_config.bad_rows_limit ({self.limit:,}){where}"
            )

    def _write(self, row_id: int, problem: str, column: str | None, value: object, row: object) -> None:
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
        self._row_ids.add(row_id)

    def bad(self, row_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """For each row whether it is held here."""
        with self._lock:
            if len(self._known) != len(self._row_ids):
                self._known = np.array(list(self._row_ids), np.int64)
            known = self._known
        return np.isin(row_ids, known)


def _append(path: Path, line: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as lines:
        lines.write(json.dumps(line, default=str, ensure_ascii=False) + "\n")


def _known_rows(path: Path, file_paths: Sequence[str]) -> list[int]:
    """The rows that an earlier part of the run wrote aside; a torn last line was not counted then either."""
    places = {file: index for index, file in enumerate(file_paths)}
    found: list[dict[str, Any]] = []
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):  # torn: what is written next begins a line of its own
        with path.open("a", encoding="utf-8") as lines:
            lines.write("\n")
    for line in text.split("\n"):
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    known = [(places[entry["file"]], entry["row"]) for entry in found if entry["file"] in places]
    table = np.array(known, np.int64).reshape(-1, 2)
    return [int(row_id) for row_id in ids_of_rows(table[:, 0], table[:, 1])]
