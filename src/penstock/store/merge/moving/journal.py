"""Which parts of a merge are done, kept in a file, so that a killed merge goes on behind them."""

import json
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from penstock.runtime.durable import flush_to_disk, sync_path
from penstock.store.merge.layouts.targets import PartChecksums

JOURNAL_NAME = "journal.jsonl"
_MOST_WAITING = 4
"""Parts that may be on their way to the disk while the next is copied; more would pile up in memory of the system."""


class PartJournal:
    """Notes parts as done: first their bytes go to disk, then the note, so that a note is never untrue.

    Waiting for the disk happens beside the copying of the next parts.
    """

    def __init__(self, folder: Path, durable: bool) -> None:
        self._folder, self._durable = folder, durable
        self._path = folder / JOURNAL_NAME
        self._thread = ThreadPoolExecutor(1, "penstock-merge-journal")
        self._finished: SimpleQueue[tuple[str, frozenset[str]]] = SimpleQueue()
        """Lines that are to be written when the bytes of some files are on disk."""
        self._waiting: deque[Future[None]] = deque()

    def read(self) -> dict[int, PartChecksums]:
        """The parts that are done; a last line that a kill left torn is passed over."""
        done: dict[int, PartChecksums] = {}
        if self._path.exists():
            for line in self._path.read_bytes().splitlines():
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                done[record["part"]] = {
                    (split, array): (crc, num_bytes) for split, array, crc, num_bytes in record["wrote"]
                }
        return done

    def note(self, part: int, checksums: PartChecksums, files: Iterable[str]) -> None:
        """Note a part as done, of which bytes lie in some files."""
        while len(self._waiting) >= _MOST_WAITING:
            self._waiting.popleft().result()
        wrote = [[split, array, crc, num_bytes] for (split, array), (crc, num_bytes) in checksums.items()]
        self._finished.put((json.dumps({"part": part, "wrote": wrote}), frozenset(files)))
        self._waiting.append(self._thread.submit(self._write_finished))

    def _write_finished(self) -> None:
        """Note all parts that have come by now: a slow disk is asked once for several."""
        lines, files = [], set[str]()
        while not self._finished.empty():
            line, its_files = self._finished.get()
            lines.append(line)
            files |= its_files
        if not lines:
            return
        if self._durable:
            for name in sorted(files):
                sync_path(self._folder / name)
        with self._path.open("ab") as stream:
            # The line break in front ends a line that a kill left torn.
            stream.write("".join(f"\n{line}\n" for line in lines).encode())
            if self._durable:
                flush_to_disk(stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown()
        if error is None:
            for waiting in self._waiting:
                waiting.result()
