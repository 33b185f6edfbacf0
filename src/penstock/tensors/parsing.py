"""What a worker process does with a record batch. No torch here: a worker without it takes half the memory."""

from dataclasses import dataclass, replace

import pyarrow as pa

from penstock.features.parser import ParsedBatch, Parser


@dataclass(frozen=True, slots=True)
class ParseBatches:
    """Parses record batches; the paths of the files, which are the same for all, are left to the parent."""

    parser: Parser
    with_labels: bool
    reject: bool = False
    """Leave out rows with bad values, and tell which they are, instead of failing."""

    def __call__(self, batch: pa.RecordBatch) -> ParsedBatch:
        """The columns of one batch."""
        parse = self.parser.parse_usable if self.reject else self.parser.parse_fast
        return replace(parse(batch, with_labels=self.with_labels), file_paths=())
