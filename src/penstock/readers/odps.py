"""Tables of ODPS (MaxCompute), read in ranges of rows through pyodps; the extra `odps` installs it.

`odps://project/tables/name/pt=1/hour=2` is a table with its partition. Blocks are consecutive rows, each fetched when
it is its turn, in requests that fit the reader's share. A request that breaks off goes on from the row behind the
last one that came.
"""

import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from penstock.config.errors import BudgetExceeded, ConfigError, DataError, nearest_name
from penstock.config.sizes import KIB, MIB, format_size
from penstock.readers.columns import as_type, join_schemas, project
from penstock.readers.files import DataFile, Uri, describe_content
from penstock.readers.order import Blocks
from penstock.readers.scan import BlockDecoder, ReadRequest, ReadSizes, RollingLease, ScannedFiles
from penstock.readers.sections import ReadingSection
from penstock.readers.stream import ROW_ID_BYTES
from penstock.runtime.budget import Share

BLOCK_ROWS = 65_536
MAX_FAILURES = 5  # in a row, without a single batch between them
FIRST_PAUSE_SECONDS = 0.5  # before the first retry; each next pause is twice as long
_SAMPLED_ROWS, _SAMPLED_TABLES = 512, 3
_MIN_REQUEST_BYTES = 64 * KIB
_MAX_REQUEST_BYTES = 16 * MIB  # larger requests are no faster
_COPIES = 3
"""Of the rows that come at once: as received, as they are given out, and the ones before, still in use."""
_SLACK = 2
"""A request is so many times smaller than what it may take: rows may be larger than those seen before."""

_TIMEOUT_SECONDS = 60
_SETTINGS = {"connect_timeout": 10, "read_timeout": _TIMEOUT_SECONDS, "retry_times": 2}
_SETTINGS |= {"local_timezone": False, "verbose": False}
"""Of the client, for all of this process. Times are given out in UTC, wherever a machine stands."""

_UNREACHABLE = "the service cannot be reached; check end_point (ODPS_ENDPOINT) and the network"
_REASONS = {
    "NoSuchProject": "there is no such project",
    "NoSuchTable": "there is no such table",
    "NoSuchPartition": "there is no such partition",
    "NoSuchObject": "there is no such project or table",
    "NoPermission": "these keys may not read it; the owner of the project can grant Describe, Select and Download",
    "SignatureNotMatch": "the service refuses the signature; check access_key (ODPS_ACCESS_KEY)",
    "AuthorizationRequired": "the service does not accept these keys; check access_id (ODPS_ACCESS_ID)",
    "ConnectTimeout": _UNREACHABLE,
    "ConnectionError": _UNREACHABLE,
    "ReadTimeout": f"the service said nothing for {_TIMEOUT_SECONDS} seconds; try again later",
}
"""What errors of the client mean, by the names of their classes."""
_LASTING = r"NoSuch(Project|Table|Partition)|NoPermission|SignatureNotMatch|Authorization"
"""Errors after which a retry is of no use."""
_FILE_VARIABLE = "ODPS_CONFIG_FILE_PATH"
_VARIABLES = {"access_id": "ODPS_ACCESS_ID", "access_key": "ODPS_ACCESS_KEY", "end_point": "ODPS_ENDPOINT"}
"""Keys of that file, and the variables that mean the same."""


@dataclass(frozen=True, slots=True)
class TablePath:
    """A table, or one partition of it ("pt=1/hour=2"; empty: the table has none)."""

    project: str
    table: str
    partition: str = ""

    @classmethod
    def parse(cls, uri: Uri) -> list[Self]:
        """The partitions of one path: `pt=1&pt=2` are two."""
        kind, _, rest = uri.key.rstrip("/").partition("/")
        table, _, partitions = rest.partition("/")
        if not uri.authority or kind != "tables" or not table:
            raise DataError(f"{uri}: is no path of a table; write odps://project/tables/name/partition=value")
        for part in filter(None, partitions.replace("&", "/").split("/")):
            if not all(part.partition("=")):
                raise DataError(f"{uri}: has '{part}' where name=value of a partition is expected")
        return [cls(uri.authority, table, partition.strip("/")) for partition in partitions.split("&")]

    @property
    def spec(self) -> str | None:
        return self.partition.replace("/", ",") or None

    @property
    def keys(self) -> dict[str, str]:
        """The columns that the partition is named by, and their values."""
        return dict(part.split("=", 1) for part in self.partition.split("/") if part)

    def __str__(self) -> str:
        table = f"odps://{self.project}/tables/{self.table}"
        return f"{table}/{self.partition}" if self.partition else table


# The service.


def access_from_environment(environment: Mapping[str, str] = os.environ) -> tuple[str, str, str]:
    """Id, key and endpoint: from ODPS_CONFIG_FILE_PATH's file, and what it lacks from variables."""
    file = environment.get(_FILE_VARIABLE, "")
    try:
        lines = Path(file).read_text(encoding="utf-8").splitlines() if file else []
    except OSError as error:
        raise ConfigError(f"{_FILE_VARIABLE} is {file}, which cannot be read: {error.strerror}") from error
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    stated = {key.strip(): value.strip() for key, separator, value in pairs if separator}
    values = {key: stated.get(key) or environment.get(name, "") for key, name in _VARIABLES.items()}
    for key, value in values.items():
        if not value:
            where = f"{file} has no {key}" if file else f"{_VARIABLES[key]} is not set"
            raise ConfigError(
                f"odps:// paths need keys, but {where}; set {', '.join(_VARIABLES.values())}, or {_FILE_VARIABLE} to "
                "a file with lines such as access_id=..., access_key=..., end_point=..."
            )
    return values["access_id"], values["access_key"], values["end_point"]


def _client() -> Any:
    try:
        from odps import ODPS, options
    except ImportError as error:
        raise DataError("odps:// paths need pyodps; install penstock[odps]") from error
    for name, value in _SETTINGS.items():
        setattr(options, name, value)
    access_id, access_key, endpoint = access_from_environment()
    return ODPS(access_id, access_key, endpoint=endpoint)


def _client_errors() -> tuple[type[Exception], ...]:
    from odps.errors import ODPSError
    from odps.tunnel.pb.errors import DecodeError
    from requests.packages.urllib3.exceptions import HTTPError  # type: ignore[import-not-found] # an alias

    return OSError, EOFError, ODPSError, HTTPError, DecodeError, pa.ArrowInvalid


def _reason(error: BaseException) -> str:
    names = [kind.__name__ for kind in type(error).__mro__]
    known = [_REASONS[name] for name in names if name in _REASONS]
    message = str(error.args[0] if error.args else error)
    return known[0] if known else f"cannot be read: {(message.splitlines() or names)[0]}"


@contextmanager
def _explained(path: TablePath) -> Iterator[None]:
    try:
        yield
    except _client_errors() as error:
        raise DataError(f"{path}: {_reason(error)}") from error


def list_tables(uri: Uri) -> list[DataFile]:
    # A partition without rows has no bytes either, which is no reason to take it for a broken file.
    return [DataFile(str(path), max(1, _describe(path)[0])) for path in TablePath.parse(uri)]


def _describe(path: TablePath) -> tuple[int, int, pa.Schema]:
    """Its bytes, a checksum of when it was changed last, and its schema; columns that name partitions come last."""
    client = _client()
    with _explained(path):
        from odps.errors import NoSuchObject
        from odps.tunnel.io.types import odps_type_to_arrow_type

        described = table = client.get_table(path.table, path.project)
        table.reload()
        columns = [*table.table_schema.simple_columns, *table.table_schema.partitions]
        keys = [key.name for key in table.table_schema.partitions]
        if list(path.keys) != keys and not keys:
            problem = "the table has no partitions, so that the path ends with its name"
            raise DataError(f"{path}: {problem}; write {TablePath(path.project, path.table)}")
        if list(path.keys) != keys:
            ending = "/".join(f"{key}=..." for key in keys)
            problem = f"the table has partitions, so that the path ends with {ending}"
            raise DataError(f"{path}: {problem}; {_known_partitions(table, path)}")
        if keys:
            described = table.get_partition(path.spec)
            try:
                described.reload()
            except NoSuchObject as error:
                raise DataError(
                    f"{path}: there is no such partition; {_known_partitions(table, path)}"
                ) from error
        schema = pa.schema([(column.name, odps_type_to_arrow_type(column.type)) for column in columns])
        changed = str(described.last_data_modified_time).encode()
        return described.size or 0, zlib.crc32(changed), schema


def _known_partitions(table: Any, path: TablePath) -> str:
    """The partitions of a table, as a part of a message; the last ones are the newest."""
    specs = [partition.partition_spec for partition in table.partitions]
    names = ["/".join(f"{key}={value}" for key, value in spec.items()) for spec in specs]
    near = nearest_name(path.partition, names)
    if near is not None:
        return f"did you mean '{TablePath(path.project, path.table, near)}'?"
    return describe_content(str(TablePath(path.project, path.table)), names[::-1])


class TableRows:
    """The rows of one table or partition, numbered as they were when it was first looked at."""

    def __init__(self, path: TablePath, num_rows: int | None = None) -> None:
        self._path = path
        self._session: Any = None
        with _explained(path):
            self.num_rows = int(self._opened(None).count) if num_rows is None else num_rows

    def batches(self, first_row: int, num_rows: int, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows from `first_row` on as the requested columns, in batches as the service cuts them."""
        keys = self._path.keys
        for batch in self._received(first_row, num_rows, [name for name in schema.names if name not in keys]):
            arrays = []
            for name, kind in zip(schema.names, schema.types, strict=True):
                array: Any = pa.repeat(keys[name], len(batch)) if name in keys else batch.column(name)
                try:
                    arrays.append(as_type(array, kind))
                except pa.ArrowInvalid as error:
                    raise DataError.at(
                        f"cannot be read as {kind}: {error}", file=str(self._path), column=name
                    ) from error
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _received(self, first_row: int, num_rows: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """As they come; what breaks off goes on behind the last row that came."""
        done = failures = 0
        while done < num_rows:
            try:
                request = (first_row + done, num_rows - done, False, columns or None)
                with closing(self._opened(self.num_rows).open_arrow_reader(*request)) as reader:
                    while (batch := reader.read_next_batch()) is not None:
                        if batch.num_rows:
                            failures = 0
                            done += batch.num_rows
                            yield batch
                if done < num_rows:
                    raise EOFError(
                        f"the service ended the rows from {first_row} on after {done} of {num_rows}"
                    )
            except _client_errors() as error:
                failures += 1
                self._session = None
                is_lasting = any(re.fullmatch(_LASTING, kind.__name__) for kind in type(error).__mro__)
                if failures > MAX_FAILURES or is_lasting:
                    raise DataError(f"{self._path}: row {first_row + done}: {_reason(error)}") from error
                time.sleep(FIRST_PAUSE_SECONDS * 2 ** (failures - 1))

    def _opened(self, num_rows: int | None) -> Any:
        """A download session, in which rows can be read in ranges for a day; a new one where the last one broke."""
        if self._session is None:
            from odps.tunnel import TableTunnel

            client, path = _client(), self._path
            self._session = TableTunnel(client, project=path.project).create_download_session(
                path.table, partition_spec=path.spec, timeout=_TIMEOUT_SECONDS
            )
            if num_rows is not None and self._session.count != num_rows:
                raise DataError(
                    f"{path}: has changed while it was being read: it had {num_rows} rows and has "
                    f"{self._session.count}; run the command again when nobody writes to it"
                )
        return self._session


# ScannedFiles and decoder.


def scan_odps(_: ReadingSection, files: Sequence[DataFile], wanted: ReadRequest) -> ScannedFiles:
    """Ask for types, numbers of rows and the moments of the last change. Tables say their own types."""
    schema: pa.Schema | None = None
    tables, fingerprints = [], []
    for file in files:
        (path,) = TablePath.parse(Uri.parse(file.path))
        checksum, stored = _describe(path)[1:]
        columns = project(stored, wanted.columns, str(path))
        if schema is None or schema.equals(columns):
            schema = columns
        else:
            schema = join_schemas(schema, files[0].path, columns, file.path)
        tables.append((path, TableRows(path).num_rows))
        fingerprints.append((file.name, file.size_bytes, tables[-1][1], checksum))
    assert schema is not None  # that of the last file counts even without rows
    found_rows = found_bytes = 0
    for path, num_rows in [table for table in tables if table[1]][:_SAMPLED_TABLES]:
        for batch in TableRows(path, num_rows).batches(0, min(_SAMPLED_ROWS, num_rows), schema):
            found_rows += batch.num_rows
            found_bytes += batch.nbytes
    row_bytes = -(-found_bytes // max(1, found_rows)) + ROW_ID_BYTES
    return ScannedOdps(
        files=tuple(files),
        fingerprints=tuple(fingerprints),
        columns=schema,
        # Equal ranges of rows, whatever the memory: a saved position must mean the same rows later.
        blocks=Blocks.of(
            (index, first_row, min(BLOCK_ROWS, num_rows - first_row))
            for index, (_, num_rows) in enumerate(tables)
            for first_row in range(0, num_rows, BLOCK_ROWS)
        ),
        tables=tuple(tables),
        sampled_row_bytes=row_bytes,
    )


@dataclass(kw_only=True, eq=False)
class ScannedOdps(ScannedFiles):
    tables: tuple[tuple[TablePath, int], ...]  # with how many rows each has
    sampled_row_bytes: int

    @property
    def sizes(self) -> ReadSizes:
        rows_bytes = _SLACK * self.sampled_row_bytes
        min_bytes = _COPIES * max(rows_bytes, _MIN_REQUEST_BYTES)
        ample_bytes = max(min_bytes, _COPIES * min(_MAX_REQUEST_BYTES, BLOCK_ROWS * rows_bytes))
        # A batch: the rows of one request, should the service send them at once.
        return ReadSizes(min_bytes, ample_bytes, ample_bytes // _COPIES)

    @property
    def row_bytes(self) -> int:
        return self.sampled_row_bytes

    def decoder(self, share: Share) -> BlockDecoder:
        return OdpsDecoder(self, share)


class OdpsDecoder(BlockDecoder):
    def __init__(self, scanned: ScannedOdps, share: Share) -> None:
        self._scanned = scanned
        self._row_bytes = scanned.row_bytes
        self._share = share
        self._lease = RollingLease(share, share.limit_bytes)
        self._request_bytes = min(_MAX_REQUEST_BYTES, share.limit_bytes // _COPIES)
        self._tables: dict[int, TableRows] = {}

    def close(self) -> None:
        self._lease.close()
        self._tables.clear()

    def batches(self, block: int, first_row: int, end_row: int) -> Iterator[pa.RecordBatch]:
        blocks = self._scanned.blocks
        file_index, start = int(blocks.file_index[block]), int(blocks.first_row[block])
        path, table_rows = self._scanned.tables[file_index]
        rows = self._tables.setdefault(file_index, TableRows(path, table_rows))
        while first_row < end_row:
            fitting_rows = max(1, self._request_bytes // (_SLACK * self._row_bytes))
            num_rows = min(fitting_rows, end_row - first_row)
            self._lease.move_on((_COPIES - 1) * self._request_bytes, self._request_bytes)
            for batch in rows.batches(start + first_row, num_rows, self._scanned.columns):
                if batch.nbytes > self._request_bytes:
                    raise BudgetExceeded(
                        f"{path}: {batch.num_rows} rows take {format_size(batch.nbytes)}, and {_COPIES} times that "
                        f"while they are handed on, but {self._share.name} may hold "
                        f"{format_size(self._share.limit_bytes)}; raise {self._share.setting}"
                    )
                # Ask for fewer rows from now on where they are larger than those before.
                self._row_bytes = max(self._row_bytes, batch.nbytes // batch.num_rows)
                yield batch
            first_row += num_rows
