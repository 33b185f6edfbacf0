"""Ranges of rows of one table, over connections that may break.

A range that breaks off goes on from the row behind the last one that came: nothing comes twice and nothing is lost,
even where the service ends a range early without a word.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.odps.paths import TablePath
from penstock.readers.odps.service import Service, broken_connections, explained, is_lasting, reason

MOST_FAILURES = 5
"""In a row, without a single batch between them."""
FIRST_PAUSE_SECONDS = 0.5
"""Before the first new attempt; each next pause is twice as long."""


class TableRows:
    """The rows of one table or partition, numbered as they were when it was first looked at."""

    def __init__(self, service: Service, path: TablePath, num_rows: int | None = None) -> None:
        self._service = service
        self._path = path
        self._session: Any = None
        self._num_rows = num_rows

    @property
    def num_rows(self) -> int:
        """How many there are."""
        if self._num_rows is None:
            with explained(self._path):
                self._num_rows = int(self._opened().count)
        return self._num_rows

    def batches(self, first_row: int, num_rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows from `first_row` on, in batches as the service cuts them."""
        done = failures = 0
        while done < num_rows:
            try:
                for batch in self._attempt(first_row + done, num_rows - done, columns):
                    failures = 0
                    done += batch.num_rows
                    yield batch
                if done < num_rows:
                    raise EOFError(
                        f"the service ended the rows from {first_row} on after {done} of {num_rows}"
                    )
            except broken_connections() as error:
                failures += 1
                self._session = None
                if failures > MOST_FAILURES or is_lasting(error):
                    raise DataError(f"{self._path}: row {first_row + done}: {reason(error)}") from error
                time.sleep(FIRST_PAUSE_SECONDS * 2 ** (failures - 1))

    def _attempt(self, first_row: int, num_rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        session = self._opened()
        open_reader = session.open_arrow_reader
        with closing(
            self._service.call(open_reader, first_row, num_rows, False, list(columns) or None)
        ) as reader:
            while (batch := self._service.call(reader.read_next_batch)) is not None:
                if batch.num_rows:
                    yield batch

    def _opened(self) -> Any:
        """The session; a new one where the last one broke or has grown too old."""
        if self._session is None:
            self._session = self._service.open_session(self._path)
            if self._num_rows is not None and self._session.count != self._num_rows:
                raise DataError(
                    f"{self._path}: has changed while it was being read: it had {self._num_rows} rows and has "
                    f"{self._session.count}; run the command again when nobody writes to it"
                )
        return self._session
