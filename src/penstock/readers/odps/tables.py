"""Finding tables and partitions, and what is known of them before their rows are read."""

import zlib
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.config.nearest import nearest_name
from penstock.readers.files import DataFile, describe_content
from penstock.readers.odps.paths import TablePath
from penstock.readers.odps.service import Service, explained
from penstock.readers.uris import Uri


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What the service says of a table or a partition."""

    size_bytes: int
    """As stored."""
    checksum: int
    """Of the moment of its last change."""
    columns: pa.Schema
    keys: pa.Schema
    """The columns that partitions are named by: the same value in every row."""


def list_tables(uri: Uri) -> list[DataFile]:
    """The tables or partitions that a path means."""
    paths = TablePath.parse_all(uri)
    service = Service()
    # A partition without rows has no bytes either, which is no reason to take it for a broken file.
    return [DataFile(str(path), max(1, describe(service, path).size_bytes)) for path in paths]


def describe(service: Service, path: TablePath) -> TableFacts:
    """Ask the service, and check that the path names a partition where there are some."""
    with explained(path):
        return _describe(service, path)


def _describe(service: Service, path: TablePath) -> TableFacts:
    table = service.table(path)
    keys = [key.name for key in table.table_schema.partitions]
    if list(path.keys) != keys:
        raise DataError(f"{path}: {_wrong_keys(keys)}; {_known_partitions(service, table, path)}")
    described = table
    if keys:
        described = service.call(table.get_partition, path.spec)
        if not service.exists(described.reload):
            raise DataError(f"{path}: there is no such partition; {_known_partitions(service, table, path)}")
    changed = str(described.last_data_modified_time).encode()
    schema = table.table_schema
    return TableFacts(
        described.size or 0, zlib.crc32(changed), _arrow(schema.simple_columns), _arrow(schema.partitions)
    )


def _arrow(columns: Any) -> pa.Schema:
    from odps.tunnel.io.types import odps_type_to_arrow_type

    return pa.schema([(column.name, odps_type_to_arrow_type(column.type)) for column in columns])


def _wrong_keys(keys: list[str]) -> str:
    if not keys:
        return "the table has no partitions, so that the path ends with its name"
    return f"the table has partitions, so that the path ends with {'/'.join(f'{key}=...' for key in keys)}"


def _known_partitions(service: Service, table: Any, path: TablePath) -> str:
    """The partitions of a table, as a part of a message; the last ones are the newest."""
    if not table.table_schema.partitions:
        return f"write {TablePath(path.project, path.table)}"
    specs = service.call(lambda: [partition.partition_spec for partition in table.partitions])
    names = ["/".join(f"{key}={value}" for key, value in spec.items()) for spec in specs]
    near = nearest_name(path.partition, names)
    if near is not None:
        return f"did you mean '{TablePath(path.project, path.table, near)}'?"
    return describe_content(str(TablePath(path.project, path.table)), names[::-1])
