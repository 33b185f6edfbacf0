"""`odps://project/tables/name/pt=1/hour=2` -> the table and the partition it means."""

from dataclasses import dataclass
from typing import Self

from penstock.config.errors import DataError
from penstock.readers.uris import Uri

_TABLES = "tables"
_SEVERAL = "&"


@dataclass(frozen=True, slots=True)
class TablePath:
    """A table, or one partition of it ("pt=1/hour=2"; empty: the table has none)."""

    project: str
    table: str
    partition: str = ""

    @classmethod
    def parse(cls, path: str) -> Self:
        """One table or partition."""
        return cls.parse_all(Uri.parse(path))[0]

    @classmethod
    def parse_all(cls, uri: Uri) -> list[Self]:
        """The partitions of one path: `pt=1&pt=2` are two."""
        kind, _, rest = uri.key.rstrip("/").partition("/")
        table, _, partitions = rest.partition("/")
        if not uri.authority or kind != _TABLES or not table:
            raise DataError(f"{uri}: is no path of a table; write odps://project/tables/name/partition=value")
        for part in filter(None, partitions.replace(_SEVERAL, "/").split("/")):
            if not all(part.partition("=")):
                raise DataError(f"{uri}: has '{part}' where name=value of a partition is expected")
        return [cls(uri.authority, table, partition.strip("/")) for partition in partitions.split(_SEVERAL)]

    @property
    def spec(self) -> str | None:
        """The partition as the service writes it."""
        return self.partition.replace("/", ",") or None

    @property
    def keys(self) -> dict[str, str]:
        """The columns that the partition is named by, and their values."""
        return dict(part.split("=", 1) for part in self.partition.split("/") if part)

    def __str__(self) -> str:
        table = f"odps://{self.project}/{_TABLES}/{self.table}"
        return f"{table}/{self.partition}" if self.partition else table
