"""Record stream -> batches: the end of the data's way, and where its place is saved."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
import torch

from penstock.data.workers.choice import Workers, each_batch
from penstock.data.workers.measured import Measured, Spent
from penstock.features.parser import ParsedBatch, Parser
from penstock.readers.quarantine import Quarantine
from penstock.readers.stream import RecordStream
from penstock.runtime.state import State
from penstock.tensors.batch import Batch
from penstock.tensors.packing import pack
from penstock.tensors.parsing import ParseBatches


class BatchLoader:
    """Parses and packs the record batches of a stream; with `workers`, processes do the parsing.

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
        workers: Workers | None = None,
        quarantine: Quarantine | None = None,
        pin_memory: bool = False,
    ) -> None:
        self.stream = stream
        self.parser = parser
        self._quarantine = quarantine
        self._pin_memory = pin_memory and torch.cuda.is_available()
        self.reserved_columns = list(reserved_columns)
        self._batches = each_batch(
            stream,
            ParseBatches(parser, with_labels, reject=quarantine is not None),
            self._packed,
            workers,
            warm=partial(parser.warm, stream.schema),
            file_paths=parser.file_paths,
        )

    def __iter__(self) -> Iterator[Batch]:
        """Batches from the present place on; one of which no row could be used is not given."""
        for batch in self._batches:
            if batch.num_rows:
                batch.resume_state = self.state_dict()
                yield batch
            del batch

    @property
    def worker_pids(self) -> list[int]:
        """The process ids of the workers that run."""
        return self._batches.pids

    @property
    def spent(self) -> Spent:
        """Seconds of parsing, and of reading and packing beside it; what workers take is not known here."""
        return self._batches.spent if isinstance(self._batches, Measured) else Spent()

    def warm(self) -> None:
        """Do now what the first batch would have to wait for: loading and compiling kernels."""
        self.parser.warm(self.stream.schema)

    def state_dict(self) -> State:
        """The place after the last batch given out."""
        return self._batches.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Go to a place that `state_dict` gave."""
        self._batches.load_state_dict(state)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self._batches.set_epoch(epoch)

    def close(self) -> None:
        """End the workers, end the stream's threads and close its files, where it has any."""
        self._batches.close()
        close = getattr(self.stream, "close", None)
        if close is not None:
            close()

    def _packed(self, parsed: ParsedBatch, record_batch: pa.RecordBatch) -> Batch:
        """One parsed batch as tensors; copies all, so that shared memory is free for the next."""
        if self._quarantine is not None:
            for row in parsed.rejected:
                self._quarantine.put(
                    row.row_id, row.problem, column=row.column, value=row.value, row=row.content
                )
        reserves = record_batch.select(self.reserved_columns) if self.reserved_columns else None
        if reserves is not None and parsed.kept is not None:
            reserves = reserves.filter(pa.array(parsed.kept))
        batch = pack(replace(parsed, file_paths=self.parser.file_paths), reserves)
        return batch.pin_memory() if self._pin_memory else batch
