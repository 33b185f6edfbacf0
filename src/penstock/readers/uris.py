"""Paths with a scheme, taken apart: `s3://bucket/key?region=eu-west-1`.

Names in a store are taken as they stand: nothing in them is decoded, and `?` begins the options of a connection.
"""

import os
from dataclasses import dataclass, replace
from typing import Self
from urllib.parse import parse_qsl

from penstock.config.errors import DataError

SEPARATOR = "://"


def is_uri(path: str) -> bool:
    """Whether a path names its own file system."""
    return SEPARATOR in path


def path_name(path: str) -> str:
    """The last part of a path, without the options of a URI.

    >>> path_name("s3://bucket/day=1/clicks.csv?region=eu-west-1")
    'clicks.csv'
    """
    return os.path.basename(path.partition("?")[0] if is_uri(path) else path)


@dataclass(frozen=True, slots=True)
class Uri:
    """The parts of a URI; `key` has no slash in front."""

    scheme: str
    authority: str
    key: str
    query: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        scheme, _, rest = text.partition(SEPARATOR)
        path, _, query = rest.partition("?")
        authority, _, key = path.partition("/")
        uri = cls(scheme.lower(), authority, key, query)
        if uri.scheme == "s3" and not authority:
            raise DataError(f"{uri}: names no bucket; write s3://bucket/path")
        if uri.scheme == "s3" and "@" in authority:
            raise DataError(
                f"s3://{authority.rpartition('@')[2]}: has keys in its path, which would stand in logs; set "
                "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY instead"
            )
        return uri

    @property
    def root(self) -> str:
        """The file system: all of the URI but the key."""
        return str(replace(self, key=""))

    @property
    def options(self) -> dict[str, str]:
        return dict(parse_qsl(self.query, keep_blank_values=True))

    def at(self, key: str) -> Self:
        """Another key of the same file system."""
        return replace(self, key=key)

    def __str__(self) -> str:
        query = f"?{self.query}" if self.query else ""
        return f"{self.scheme}{SEPARATOR}{self.authority}/{self.key}{query}"
