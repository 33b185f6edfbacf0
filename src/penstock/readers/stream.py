"""What every reader and every batching stage is: something one can iterate, stop, save and continue.

The last column of every record batch is `ROW_COLUMN`: where a row came from, as one number that travels with it. It is
the index of the file in the list of files, and the row in that file, both counted from 0.
"""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.config.errors import CheckpointError, DataError
from penstock.readers.order import ConsumedRows, Int64Array
from penstock.runtime.world import State

ROW_COLUMN = "__row__"
ROW_FIELD = pa.field(ROW_COLUMN, pa.int64(), nullable=False)
ROW_ID_BYTES = 8
ROW_BITS = 40
"""Of a row id, for the row in its file; the file's index stands above them."""
_START_OVER = "start over (train: another --model_dir; --fine_tune_checkpoint keeps the model)"
"""What remains for whoever cannot go on from a saved position, as the end of an error."""
_OTHER_FILES = f"go on with these (train: --new_data), or {_START_OVER}"

T_co = TypeVar("T_co", covariant=True)


def row_ids(file_index: int, first_row: int, num_rows: int) -> pa.Int64Array:
    start = (file_index << ROW_BITS) | first_row
    return pa.array(np.arange(start, start + num_rows), pa.int64())


def with_row_ids(batch: pa.RecordBatch, file_index: int, first_row: int) -> pa.RecordBatch:
    return batch.append_column(ROW_FIELD, row_ids(file_index, first_row, batch.num_rows))


def locate(row_id: int) -> tuple[int, int]:
    """The file's index and the row in that file.

    >>> locate((3 << 40) | 17)
    (3, 17)
    """
    return int(row_id) >> ROW_BITS, int(row_id) % (1 << ROW_BITS)


def file_and_row(row_id: int, file_paths: Sequence[str]) -> tuple[str, int]:
    """The file, by its number where its path is not known, and the row in it."""
    file_index, row = locate(row_id)
    return file_paths[file_index] if file_index < len(file_paths) else f"file {file_index}", row


def describe_rows(ids: Int64Array, file_paths: Sequence[str]) -> str:
    file, row = file_and_row(ids[0], file_paths)
    if bool((np.diff(ids) == 1).all()):
        return f"rows {row} to {row + len(ids) - 1} of {file}"
    return f"{len(ids)} scattered rows, the first of them row {row} of {file}"


class Stream(Protocol[T_co]):
    """Items in a fixed order, with a position in it.

    A stream is its own cursor: iterating goes on from its position and moves it, so that leaving a loop and
    starting another continues, and iterating after the end gives nothing until `set_epoch`.
    """

    def __iter__(self) -> Iterator[T_co]: ...

    def state_dict(self) -> State:
        """The position after the last item that was given out. Cheap: stages ask after every item."""
        ...

    def load_state_dict(self, state: State) -> None: ...

    def set_epoch(self, epoch: int) -> None: ...


@dataclass(frozen=True, slots=True)
class StreamPosition:
    """How many rows a stream has given out in this epoch."""

    epoch: int
    row: int = 0
    consumed: ConsumedRows | None = None
    """Given out by other streams, before this one took over the rest of the epoch."""

    def at(self, row: int) -> Self:
        return type(self)(self.epoch, row, self.consumed)


class RecordStream(ABC):
    """A stream of record batches that all have one schema, `ROW_COLUMN` last; its position is a number of rows.

    The rows come in one order, which follows from `order` alone. So a position needs no more than a count, and any
    stage can be entered at any row: nothing that waits in a buffer is ever saved.
    """

    schema: pa.Schema
    order: State
    """Everything that the order of rows follows from: files, seeds, shard, sizes of windows."""
    position: StreamPosition
    """After the last batch that was given out; one that is set is where the next iteration starts."""
    file_paths: Sequence[str] = ()
    """The files that row ids count, for messages."""
    num_waiting: Callable[[], int] | None = None
    """How many batches wait where somebody reads ahead: with few left, a reader may take more cores for the next."""

    @abstractmethod
    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Record batches from the present position to the end of the epoch; none is empty."""

    def close(self) -> None:
        """End threads and close files, where there are any; the stream can be iterated again."""
        return

    def state_dict(self) -> State:
        position = self.position
        consumed = None if position.consumed is None else position.consumed.state
        return {"epoch": position.epoch, "row": position.row, "done": consumed, "order": self.order}

    def load_state_dict(self, state: State) -> None:
        if not {"epoch", "row", "done", "order"} <= set(state or ()):
            raise CheckpointError(f"{state!r:.80} is no position in the data; load what state_dict() gave")
        check_order(state["order"], self.order, self.file_paths)
        consumed = None if state["done"] is None else ConsumedRows.of_state(state["done"])
        self.position = StreamPosition(state["epoch"], state["row"], consumed)

    def set_epoch(self, epoch: int) -> None:
        self.position = StreamPosition(epoch)


def check_order(saved: State, present: State, file_paths: Sequence[str]) -> None:
    """Refuse a position that was saved in another order of rows, with the reason."""
    for old, new, path in zip(saved["files"], present["files"], file_paths, strict=False):
        if tuple(old) != tuple(new):
            raise CheckpointError(
                f"{path}: is not the file that the position was saved with (was {_describe(old)}; "
                f"is {_describe(new)}); put that file back, {_OTHER_FILES}"
            )
    if len(saved["files"]) != len(present["files"]):
        raise CheckpointError(
            f"the position was saved with {len(saved['files'])} files but there are {len(present['files'])} now; "
            f"put the same files back, {_OTHER_FILES}"
        )
    if saved["seed"] != present["seed"]:
        was, now = (
            "no shuffle" if order["seed"] is None else f"shuffle seed {order['seed']}"
            for order in (saved, present)
        )
        raise CheckpointError(
            f"the position was saved with {was} but the run has {now}; "
            f"set data_config.shuffle and data_config.seed as they were, or {_START_OVER}"
        )
    if saved["blocks"] != present["blocks"]:
        raise CheckpointError(
            "the position was saved with other blocks of the same files; read them with the version that saved "
            f"it, or {_START_OVER}"
        )
    if saved["shard"] != present["shard"]:
        (old_index, old_count), (index, count) = saved["shard"], present["shard"]
        raise CheckpointError(
            f"the position is of shard {old_index} of {old_count}, this is shard {index} of {count}; load the "
            "positions of all shards together"
        )
    old_windows, windows = saved.get("shuffle") or {}, present.get("shuffle") or {}
    for name in windows | old_windows:
        if old_windows.get(name) != windows.get(name):
            raise CheckpointError(
                f"the position was saved with shuffle {name} {old_windows.get(name)} but the run has "
                f"{windows.get(name)}; set data_config.shuffle_buffer, bucket_by, batch_size and seed as they "
                f"were, or {_START_OVER}"
            )


def _describe(mark: Sequence[object]) -> str:
    name, size_bytes, num_rows, *checksums = mark
    rows = "" if num_rows is None else f", {num_rows} rows"
    content = "".join(f", checksum {checksum}" for checksum in checksums)
    return f"{name}, {size_bytes} bytes{rows}{content}"


class Quarantine:
    """Rows that cannot be used: written aside with the reason, and left out; too many of them are an error.

    A line of JSON for each bad row, however often it is read; without a path rows are counted only. Whoever finds a
    bad row puts it here. A reader gives such a row on, with nulls in place of what it could not read, so that
    positions, which count rows, stay right; whoever makes batches leaves it out.
    """

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
