"""CSV files, plain or compressed, one block of records at a time, inside the reader's share."""

import csv
from collections.abc import Iterator, Sequence
from contextlib import closing

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.columns import project
from penstock.readers.csv_decode import CsvForm, decode
from penstock.readers.csv_text import end_of_first_record, open_text, text_blocks
from penstock.readers.csv_types import declared_types, sampled_types
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import check_same_files, check_same_seed, fingerprint
from penstock.readers.leasing import RollingLease
from penstock.readers.order import block_order
from penstock.readers.origin import ROW_FIELD, with_row_ids
from penstock.readers.sections import Field, ReadingSection
from penstock.readers.stream import Reader
from penstock.runtime.budget import Share
from penstock.runtime.state import State

_DECODED_FACTOR = 6
"""Bytes that a byte of text takes at most while it is parsed: the text, its parsed cells, the columns."""
_MOST_BLOCK_BYTES = 2 * MIB
_MOST_HEADER_BYTES = MIB


def open_csv(
    reading: ReadingSection,
    files: Sequence[DataFile],
    columns: Sequence[str] | None,
    share: Share,
    *,
    block_shuffle_seed: int | None = None,
) -> Reader:
    """The rows of CSV files; with a seed, the order of the files is permuted per epoch."""
    fields = reading.resolved_input_fields()
    forms = [read_form(file, reading, fields) for file in files]
    if columns is None:
        columns = forms[0].names
    for form in forms:
        project(pa.schema([(name, pa.string()) for name in form.names]), columns, form.path)
    declared = declared_types(fields)
    sampled = sampled_types(files, forms, [name for name in columns if name not in declared])
    schema = pa.schema([(name, declared.get(name) or sampled[name]) for name in columns])
    return CsvStream(files, forms, schema, share, block_shuffle_seed)


def read_form(file: DataFile, reading: ReadingSection, fields: Sequence[Field]) -> CsvForm:
    """How a file is laid out, from its header or from the declared columns."""
    first_record = _first_record(file)
    try:
        cells = next(csv.reader([first_record.decode("utf-8-sig")], delimiter=reading.delimiter), [])
    except UnicodeDecodeError as error:
        raise DataError(f"{file.path}: is not UTF-8 text; is it CSV?") from error
    if reading.with_header:
        return CsvForm(file.path, tuple(cells), len(first_record), reading.delimiter)
    names = tuple(field.input_name for field in fields)
    if not names:
        raise ConfigError.at(
            "data_config.input_fields", f"must name the columns of {file.path}, unless with_header is true"
        )
    if len(cells) != len(names):
        raise DataError(
            f"{file.path}: the first row has {len(cells)} columns but data_config.input_fields names "
            f"{len(names)}; are delimiter and with_header right?"
        )
    return CsvForm(file.path, names, 0, reading.delimiter)


def _first_record(file: DataFile) -> bytes:
    with open_text(file) as source:
        text = source.read(_MOST_HEADER_BYTES)
    return text[: end_of_first_record(text) or len(text)]


class CsvStream:
    """A stream over blocks of records; its place: the epoch, the files done, the byte in the next."""

    num_rows = None

    def __init__(
        self,
        files: Sequence[DataFile],
        forms: Sequence[CsvForm],
        schema: pa.Schema,
        share: Share,
        file_shuffle_seed: int | None = None,
    ) -> None:
        self._files = tuple(files)
        self._forms = tuple(forms)
        self._columns = schema
        self._share = share
        self._seed = file_shuffle_seed
        self._fingerprints = [fingerprint(file, None) for file in files]
        self._lease = RollingLease(share)
        self.set_epoch(0)

    @property
    def schema(self) -> pa.Schema:
        """The wanted columns and `ROW_COLUMN`."""
        return self._columns.append(ROW_FIELD)

    def set_epoch(self, epoch: int) -> None:
        """Go to the start of an epoch."""
        self._go_to(epoch, num_files_done=0, byte=0, row=0)

    def state_dict(self) -> State:
        """The place after the last batch."""
        return {
            "epoch": self._epoch,
            "num_files_done": self._num_files_done,
            "byte": self._byte,
            "row": self._row,
            "seed": self._seed,
            "files": self._fingerprints,
        }

    def load_state_dict(self, state: State) -> None:
        """Go to a place that was saved with the same files and the same seed."""
        check_same_files(state["files"], self._fingerprints, self._files)
        check_same_seed(state["seed"], self._seed)
        self._go_to(state["epoch"], state["num_files_done"], state["byte"], state["row"])

    def _go_to(self, epoch: int, num_files_done: int, byte: int, row: int) -> None:
        self._epoch = epoch
        self._num_files_done = num_files_done
        self._byte = byte
        self._row = row
        self._order = block_order(len(self._files), self._seed, epoch)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Record batches from the present place on, a block of text each."""
        self._lease.close()
        lease = self._lease = RollingLease(self._share)
        with closing(lease):
            while self._num_files_done < len(self._files):
                yield from self._rows_of(int(self._order[self._num_files_done]), lease)
                self._num_files_done += 1
                self._byte = self._row = 0

    def _rows_of(self, file_index: int, lease: RollingLease) -> Iterator[pa.RecordBatch]:
        """The rows of a file from the present byte on; the place is moved before each batch is given out."""
        form = self._forms[file_index]
        types = dict(zip(self._columns.names, self._columns.types, strict=True))
        block_bytes = max(4 * KIB, min(_MOST_BLOCK_BYTES, self._share.limit_bytes // 32))
        start = max(self._byte, form.data_start)
        for block in text_blocks(self._files[file_index], start, block_bytes, most_bytes=2 * block_bytes):
            needed_bytes = _DECODED_FACTOR * len(block.text)
            lease.move_on(needed_bytes, retained_bytes=needed_bytes)
            for batch in decode(block.text, form, types, self._row).combine_chunks().to_batches():
                first_row, self._row = self._row, self._row + batch.num_rows
                self._byte = block.end
                yield with_row_ids(batch, file_index, first_row)
