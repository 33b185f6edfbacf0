"""Record stream -> batches: the end of the data's way, and where its place is saved."""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.features.parser import Parser
from penstock.readers.stream import RecordStream
from penstock.runtime.state import State
from penstock.tensors.batch import Batch
from penstock.tensors.packing import pack


class BatchLoader:
    """Parses and packs the record batches of a stream.

    Like the stream it is its own cursor: iterating goes on from its place. The place after the last batch
    given out is the stream's, since nothing is read ahead here.
    """

    def __init__(
        self,
        stream: RecordStream,
        parser: Parser,
        *,
        reserved_columns: Sequence[str] = (),
        with_labels: bool = True,
    ) -> None:
        self.stream = stream
        self.parser = parser
        self.reserved_columns = list(reserved_columns)
        self.with_labels = with_labels

    def __iter__(self) -> Iterator[Batch]:
        for record_batch in self.stream:
            yield self.batch_of(record_batch)

    def batch_of(self, record_batch: pa.RecordBatch) -> Batch:
        """One record batch as tensors."""
        parsed = self.parser.parse(record_batch, with_labels=self.with_labels)
        reserves = record_batch.select(self.reserved_columns) if self.reserved_columns else None
        return pack(parsed, reserves)

    def warm(self) -> None:
        """Do now what the first batch would have to wait for: loading and compiling kernels."""
        self.parser.warm(self.stream.schema)

    def state_dict(self) -> State:
        """The place after the last batch given out."""
        return {"stream": self.stream.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Go to a place that `state_dict` gave."""
        self.stream.load_state_dict(state["stream"])

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self.stream.set_epoch(epoch)

    def close(self) -> None:
        """End the stream's threads and close its files, where it has any."""
        close = getattr(self.stream, "close", None)
        if close is not None:
            close()
