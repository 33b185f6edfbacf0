"""Record stream -> batches: the end of the data's way, and where its place is saved."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import torch

from penstock.data.parallel_map import ParallelMap
from penstock.features.parser import ParsedBatch, Parser
from penstock.readers.quarantine import Quarantine
from penstock.readers.stream import RecordStream
from penstock.runtime.budget import Share
from penstock.runtime.world import State
from penstock.tensors.batch import Batch
from penstock.tensors.packing import pack


@dataclass(slots=True)
class Spent:
    """Seconds of all batches that this process parsed: in parsing, and in reading and packing beside it."""

    function: float = 0.0
    beside: float = 0.0


class BatchLoader:
    """Parses and packs the record batches of a stream; with `num_workers`, processes do the parsing.

    With `pin_memory`, batches lie in page-locked memory where there is an accelerator to copy them to.
    With a `quarantine`, rows with bad values go there, and the others on; without one, such a row is an error.

    Like the stream it is its own cursor: iterating goes on from its place. Its place is the stream's after the
    last batch given out, so that it means the same for any number of workers.
    """

    def __init__(
        self,
        stream: RecordStream,
        parser: Parser,
        *,
        reserved_columns: Sequence[str] = (),
        with_labels: bool = True,
        num_workers: int = 0,
        worker_share: Share | None = None,
        quarantine: Quarantine | None = None,
        pin_memory: bool = False,
    ) -> None:
        self.stream = stream
        self.parser = parser
        self._quarantine = quarantine
        self._pin_memory = pin_memory and torch.cuda.is_available()
        self.reserved_columns = list(reserved_columns)
        parse = parser.parse if quarantine is None else parser.parse_usable
        self._parse = partial(parse, with_labels=with_labels)
        self.spent = Spent()
        """Without workers only: what they take is not known here."""
        self._workers: ParallelMap[ParsedBatch] | None = None
        if num_workers:
            assert worker_share is not None
            self._workers = ParallelMap(stream, self._parse, num_workers, worker_share, parser.file_paths)

    def __iter__(self) -> Iterator[Batch]:
        """Batches from the present place on; one of which no row could be used is not given."""
        if self._workers is not None:
            packed = (self._packed(*parsed) for parsed in self._workers)
            for batch in packed:
                if batch.num_rows:
                    batch.resume_state = self.state_dict()
                    yield batch
                del batch
            return
        ended_at = time.perf_counter()
        for record_batch in self.stream:
            read_at = time.perf_counter()
            parsed = self._parse(record_batch)
            parsed_at = time.perf_counter()
            batch = self._packed(parsed, record_batch)
            del record_batch, parsed
            self.spent.function += parsed_at - read_at
            self.spent.beside += read_at - ended_at + time.perf_counter() - parsed_at
            if batch.num_rows:
                batch.resume_state = self.state_dict()
                yield batch
            del batch
            ended_at = time.perf_counter()

    @property
    def worker_pids(self) -> list[int]:
        return [] if self._workers is None else self._workers.pids

    def warm(self) -> None:
        """Do now what the first batch would have to wait for: loading and compiling kernels."""
        self.parser.warm(self.stream.schema)

    def state_dict(self) -> State:
        return (self._workers or self.stream).state_dict()

    def load_state_dict(self, state: State) -> None:
        (self._workers or self.stream).load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        (self._workers or self.stream).set_epoch(epoch)

    def close(self) -> None:
        if self._workers is not None:
            self._workers.close()
        self.stream.close()

    def _packed(self, parsed: ParsedBatch, record_batch: pa.RecordBatch) -> Batch:
        """One parsed batch as tensors; copies all, so that the record batch can go."""
        if self._quarantine is not None:
            for row in parsed.rejected:
                self._quarantine.put(
                    row.row_id, row.problem, column=row.column, value=row.value, row=row.content
                )
        reserves = record_batch.select(self.reserved_columns) if self.reserved_columns else None
        if reserves is not None and parsed.kept is not None:
            reserves = reserves.filter(pa.array(parsed.kept))
        batch = pack(parsed, reserves, self.parser.file_paths)
        return batch.pin_memory() if self._pin_memory else batch
