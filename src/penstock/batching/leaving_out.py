"""Leave out rows that were found to be unusable."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.batching.stage import Stage
from penstock.readers.origin import ROW_COLUMN
from penstock.readers.quarantine import Quarantine
from penstock.readers.stream import RecordStream


def without_bad_rows(source: RecordStream, quarantine: Quarantine) -> "WithoutBadRows":
    """The batches of the source without the rows that readers have put into quarantine.

    The place counts them all the same: a row that was left out is done.
    """
    return WithoutBadRows(source, quarantine)


class WithoutBadRows(Stage):
    """The stream that `without_bad_rows` gives."""

    def __init__(self, source: RecordStream, quarantine: Quarantine) -> None:
        super().__init__(source)
        self._quarantine = quarantine

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Batches from the present place on; one of which nothing is left is not given."""
        self._source.go_to(self._place)
        for batch in self._source:
            self._place = self._source.place
            bad = self._quarantine.bad(np.asarray(batch.column(ROW_COLUMN)))
            rows = batch.filter(pa.array(~bad)) if bad.any() else batch
            if rows.num_rows:
                yield rows
