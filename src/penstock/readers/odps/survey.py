"""Tables of ODPS in blocks of consecutive rows, each fetched when it is its turn, a few rows at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.blocks import Blocks
from penstock.readers.columns import join_schemas, project
from penstock.readers.files import DataFile
from penstock.readers.fingerprints import Fingerprint, fingerprint
from penstock.readers.odps.decode import (
    COPIES,
    MOST_REQUEST_BYTES,
    SLACK,
    OdpsDecoder,
    TableDecoder,
    TableLayout,
)
from penstock.readers.odps.paths import TablePath
from penstock.readers.odps.ranges import TableRows
from penstock.readers.odps.service import Service
from penstock.readers.odps.tables import TableFacts, describe
from penstock.readers.origin import ROW_FIELD
from penstock.readers.sections import ReadingSection
from penstock.readers.survey import BlockDecoder, Survey, Wanted
from penstock.runtime.budget import Share

BLOCK_ROWS = 65_536
_SAMPLED_ROWS = 512
_SAMPLED_TABLES = 3
_LEAST_REQUEST_BYTES = 64 * KIB


@dataclass(frozen=True)
class OdpsSurvey(Survey):
    """What the service says of the tables."""

    files: tuple[DataFile, ...]
    fingerprints: tuple[Fingerprint, ...]
    tables: tuple[TableLayout, ...]
    schema: pa.Schema

    @property
    def columns(self) -> pa.Schema:
        """The wanted columns."""
        return self.schema

    @cached_property
    def blocks(self) -> Blocks:
        """Equal ranges of rows, whatever the memory: a saved place must mean the same rows later."""
        return Blocks.of(
            (index, first_row, min(BLOCK_ROWS, table.num_rows - first_row))
            for index, table in enumerate(self.tables)
            for first_row in range(0, table.num_rows, BLOCK_ROWS)
        )

    @cached_property
    def row_bytes(self) -> int:
        """From the first rows of a few tables."""
        tables = [table for table in self.tables if table.num_rows][:_SAMPLED_TABLES]
        service = Service()
        batches = [
            batch
            for table in tables
            for batch in TableDecoder(service, table, self.schema).batches(
                0, min(_SAMPLED_ROWS, table.num_rows)
            )
        ]
        num_rows = sum(batch.num_rows for batch in batches)
        num_bytes = sum(batch.nbytes for batch in batches)
        return -(-num_bytes // max(1, num_rows)) + ROW_FIELD.type.bit_width // 8

    @property
    def least_bytes(self) -> int:
        """Few rows in a request."""
        return COPIES * max(SLACK * self.row_bytes, _LEAST_REQUEST_BYTES)

    @property
    def ample_bytes(self) -> int:
        """Larger requests are no faster."""
        return max(self.least_bytes, COPIES * min(MOST_REQUEST_BYTES, SLACK * BLOCK_ROWS * self.row_bytes))

    @property
    def block_bytes(self) -> int:
        """The rows of one request, should the service send them at once."""
        return self.ample_bytes // COPIES

    def decoder(self, share: Share) -> BlockDecoder:
        """Fetches ranges of rows."""
        return OdpsDecoder(self.tables, self.blocks, self.schema, self.row_bytes, share)


def survey_odps(
    reading: ReadingSection,  # noqa: ARG001 - every format is surveyed alike
    files: Sequence[DataFile],
    wanted: Wanted,
) -> Survey:
    """Ask for types, numbers of rows and the moments of the last change. Tables say their own types."""
    service = Service()
    schema: pa.Schema | None = None
    tables, fingerprints = [], []
    for file in files:
        path = TablePath.parse(file.path)
        facts = describe(service, path)
        schema = join_schemas(schema, files[0].path, _wanted_columns(facts, wanted, path), file.path)
        num_rows = TableRows(service, path).num_rows
        tables.append(TableLayout(path, num_rows))
        fingerprints.append(fingerprint(file, num_rows, facts.checksum))
    if schema is None:
        raise DataError("no tables are given")
    return OdpsSurvey(tuple(files), tuple(fingerprints), tuple(tables), schema)


def _wanted_columns(facts: TableFacts, wanted: Wanted, path: TablePath) -> pa.Schema:
    return project(pa.schema([*facts.columns, *facts.keys]), wanted.columns, str(path))
