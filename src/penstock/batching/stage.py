"""What stages have in common that give the rows of their source in another order or in other portions."""

import pyarrow as pa

from penstock.readers.stream import Place, RecordStream
from penstock.runtime.world import State


class Stage(RecordStream):
    """A stage over a source; one that keeps the order of rows says only how it gives them (`__iter__`).

    The place of such a stage is a count of the source's rows, so that its source is entered at the same row.
    """

    def __init__(self, source: RecordStream) -> None:
        self._source = source
        self._place = source.place

    @property
    def schema(self) -> pa.Schema:
        """The columns of the source."""
        return self._source.schema

    @property
    def order(self) -> State:
        """The source's."""
        return self._source.order

    @property
    def place(self) -> Place:
        """The place after the last batch that was given out."""
        return self._place

    def go_to(self, place: Place) -> None:
        """Go to a row; the source follows when it is read."""
        self._place = place

    def close(self) -> None:
        """End threads and close files; the stage can be iterated again."""
        self._source.close()

    def check_order(self, saved: State) -> None:
        """The source's must be as it was."""
        self._source.check_order(saved)
