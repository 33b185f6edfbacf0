"""Rows that cannot be used: written aside with the reason, and left out; too many of them are an error.

Whoever finds a bad row puts it here. A reader gives such a row on, with nulls in place of what it could not read,
so that positions, which count rows, stay right; whoever makes batches leaves it out.
"""

import json
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.readers.stream import locate, row_ids


class Quarantine:
    """A line of JSON for each bad row, however often it is read; without a path rows are counted only."""

    def __init__(self, path: Path | None, limit: int, file_paths: Sequence[str]) -> None:
        self.path = path
        self.limit = limit
        self._file_paths = tuple(file_paths)
        self._row_ids: set[int] = set()
        self._known = np.empty(0, np.int64)
        self._lock = threading.Lock()
        # The rows that an earlier part of the run wrote; a torn last line was not counted then either.
        text = path.read_text(encoding="utf-8") if path is not None and path.exists() else ""
        if path is not None and text and not text.endswith("\n"):  # what is written next begins a new line
            with path.open("a", encoding="utf-8") as lines:
                lines.write("\n")
        file_indexes = {file: index for index, file in enumerate(self._file_paths)}
        for line in text.split("\n"):
            try:
                entry = json.loads(line)
            except json.JSONDecodeError:
                continue
            if entry["file"] in file_indexes:
                self._row_ids.add(row_ids(file_indexes[entry["file"]], entry["row"], 1)[0].as_py())

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
        file_index, row_number = locate(row_id)
        file = self._file_paths[file_index]
        with self._lock:
            if row_id not in self._row_ids and self.path is not None:
                line = {"file": file, "row": row_number, "column": column, "value": value}
                line |= {"problem": problem, "content": row}
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a", encoding="utf-8") as lines:
                    lines.write(json.dumps(line, default=str, ensure_ascii=False) + "\n")
            self._row_ids.add(row_id)
        if len(self) > self.limit:
            where = "" if self.path is None else f"; see {self.path}"
            raise DataError(
                f"{file}: row {row_number}: {problem}; with it {len(self):,} rows cannot be used, more than "
                f"data_config.bad_rows_limit ({self.limit:,}){where}"
            )

    def bad(self, row_ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        with self._lock:
            if len(self._known) != len(self._row_ids):
                self._known = np.array(list(self._row_ids), np.int64)
            known = self._known
        return np.isin(row_ids, known)
