"""CSV files, plain or compressed, one block of records at a time, inside the reader's share."""

import csv
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import KIB, MIB
from penstock.readers.columns import project
from penstock.readers.text.csv_decode import CsvForm, decode
from penstock.readers.text.csv_records import end_of_first_record
from penstock.readers.text.source import open_text, text_blocks
from penstock.readers.text.csv_types import declared_types, sample_columns
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import (
    Fingerprint,
    check_same_files,
    check_same_seed,
    ends_checksum,
    fingerprint,
)
from penstock.readers.leasing import RollingLease
from penstock.readers.order import block_order
from penstock.readers.origin import ROW_FIELD, with_row_ids
from penstock.readers.sections import Field, ReadingSection
from penstock.readers.stream import Reader
from penstock.readers.survey import Survey
from penstock.runtime.budget import Share
from penstock.runtime.state import State

_DECODED_FACTOR = 6
"""Bytes that a byte of text takes at most while it is parsed: the text, its parsed cells, the columns."""
_LEAST_BLOCK_BYTES = 4 * KIB
_MOST_BLOCK_BYTES = 2 * MIB
_BLOCK_SHARE = 32
"""A block of text takes at most this part of the share: two of them exist, and a record may need two."""
_MOST_HEADER_BYTES = MIB


@dataclass(frozen=True, slots=True)
class CsvSurvey:
    """How the files are laid out, and the types of the wanted columns."""

    files: tuple[DataFile, ...]
    forms: tuple[CsvForm, ...]
    columns: pa.Schema
    fingerprints: tuple[Fingerprint, ...]
    row_bytes: int
    text_row_bytes: int
    """Of a row as it stands in the files."""

    @property
    def schema(self) -> pa.Schema:
        """The wanted columns and `ROW_COLUMN`."""
        return self.columns.append(ROW_FIELD)

    @property
    def num_rows(self) -> None:
        """Only reading would tell."""

    @property
    def least_bytes(self) -> int:
        """A row must fit a block."""
        return _BLOCK_SHARE * max(_LEAST_BLOCK_BYTES, self.text_row_bytes)

    @property
    def ample_bytes(self) -> int:
        """Blocks have their full size."""
        return _BLOCK_SHARE * max(_MOST_BLOCK_BYTES, self.text_row_bytes)

    def open(self, share: Share, block_shuffle_seed: int | None = None) -> Reader:
        """The rows of the files; with a seed, the order of the files is permuted per epoch."""
        return CsvStream(self, share, block_shuffle_seed)


def survey_csv(
    reading: ReadingSection,
    files: Sequence[DataFile],
    columns: Sequence[str] | None,
    text_columns: Collection[str] = (),
) -> Survey:
    """Read headers, and find the types that are not declared from samples."""
    fields = reading.resolved_input_fields()
    forms = [read_form(file, reading, fields) for file in files]
    if columns is None:
        columns = forms[0].names
    for form in forms:
        project(pa.schema([(name, pa.string()) for name in form.names]), columns, form.path)
    known = dict.fromkeys(text_columns, pa.string()) | declared_types(fields)
    sample = sample_columns(files, forms, columns, known)
    return CsvSurvey(
        tuple(files),
        tuple(forms),
        pa.schema([(name, sample.types[name]) for name in columns]),
        tuple(fingerprint(file, None, ends_checksum(file)) for file in files),
        sample.row_bytes,
        sample.text_row_bytes,
    )


def read_form(file: DataFile, reading: ReadingSection, fields: Sequence[Field]) -> CsvForm:
    """How a file is laid out, from its header or from the declared columns."""
    first_record = _first_record(file, reading.delimiter)
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


def _first_record(file: DataFile, delimiter: str) -> bytes:
    with open_text(file) as source:
        text = source.read(_MOST_HEADER_BYTES)
    return text[: end_of_first_record(text, delimiter) or len(text)]


class CsvStream:
    """A stream over blocks of records; its place: the epoch, the files done, the byte in the next."""

    num_rows = None

    def __init__(
        self,
        survey: CsvSurvey,
        share: Share,
        file_shuffle_seed: int | None = None,
    ) -> None:
        self._files = survey.files
        self._forms = survey.forms
        self._columns = survey.columns
        self._fingerprints = list(survey.fingerprints)
        self._share = share
        self._seed = file_shuffle_seed
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
        block_bytes = max(_LEAST_BLOCK_BYTES, min(_MOST_BLOCK_BYTES, self._share.limit_bytes // _BLOCK_SHARE))
        start = max(self._byte, form.data_start)
        file = self._files[file_index]
        for block in text_blocks(file, start, form.delimiter, block_bytes, most_bytes=2 * block_bytes):
            needed_bytes = _DECODED_FACTOR * len(block.text)
            lease.move_on(needed_bytes, retained_bytes=needed_bytes)
            for batch in decode(block.text, form, types, self._row).combine_chunks().to_batches():
                first_row, self._row = self._row, self._row + batch.num_rows
                self._byte = block.end
                yield with_row_ids(batch, file_index, first_row)
