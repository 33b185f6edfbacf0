"""The dictionaries of a file: one for all record batches in a file, growing or replaced on the way in a stream."""

from typing import Any

import pyarrow as pa

from penstock.readers.arrow_ipc.body import Body
from penstock.readers.arrow_ipc.messages import BatchMessage, Messages
from penstock.readers.arrow_ipc.rows import RowReader
from penstock.readers.arrow_ipc.stored import StoredColumns
from penstock.readers.casting import as_type
from penstock.readers.columns import plain_type


class Dictionaries:
    """The words of the columns of one open file; the present ones are kept."""

    def __init__(self, source: pa.NativeFile, messages: Messages) -> None:
        self._source = source
        self._messages = messages
        self._kept: dict[int, tuple[list[int], Any]] = {}

    def words(self, dictionary_id: int, value_type: Any, batch: BatchMessage) -> Any:
        """The words that a record batch counts in."""
        chosen = self._chosen(dictionary_id, batch)
        starts = [message.start for message in chosen]
        if dictionary_id not in self._kept or self._kept[dictionary_id][0] != starts:
            self._kept.pop(dictionary_id, None)
            given_type = plain_type(value_type)
            parts = [as_type(self._read(message, value_type), given_type) for message in chosen]
            words = parts[0] if len(parts) == 1 else pa.concat_arrays(parts)
            self._kept[dictionary_id] = (starts, words)
        return self._kept[dictionary_id][1]

    def _chosen(self, dictionary_id: int, batch: BatchMessage) -> list[BatchMessage]:
        """The last whole dictionary and what was added to it; in a stream only what stands before the batch."""
        chosen: list[BatchMessage] = []
        for message in self._messages.dictionaries:
            is_present = not self._messages.is_stream or message.start < batch.start
            if message.dictionary_id == dictionary_id and is_present:
                chosen = [*chosen, message] if message.is_delta else [message]
        if not chosen:
            raise ValueError(f"dictionary {dictionary_id} is missing")
        return chosen

    def _read(self, message: BatchMessage, value_type: Any) -> Any:
        columns = StoredColumns([value_type], [()]).of(message.num_view_buffers)
        reader = RowReader(Body(self._source, message), message, _no_words)
        return reader.rows(columns[0], 0, message.num_rows)


def _no_words(dictionary_id: int, value_type: Any) -> Any:
    raise ValueError(f"dictionary {dictionary_id} of {value_type} stands inside another one")
