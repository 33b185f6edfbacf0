"""Talking to the table service through pyodps: bounded waiting, and errors that say what to do."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa

from penstock.config.errors import DataError
from penstock.readers.odps.paths import TablePath
from penstock.runtime.odps_access import OdpsAccess

T = TypeVar("T")

CONNECT_TIMEOUT_SECONDS = 10
SILENCE_TIMEOUT_SECONDS = 60
_SETTINGS = {
    "connect_timeout": CONNECT_TIMEOUT_SECONDS,
    "read_timeout": SILENCE_TIMEOUT_SECONDS,
    "retry_times": 2,
    "local_timezone": False,
    "verbose": False,
}
"""Of the client. Times are given out in UTC, wherever a machine stands."""

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
    "ReadTimeout": f"the service said nothing for {SILENCE_TIMEOUT_SECONDS} seconds; try again later",
}
"""What errors of the client mean, by the names of their classes."""
_LASTING = (
    "NoSuchProject",
    "NoSuchTable",
    "NoSuchPartition",
    "NoPermission",
    "SignatureNotMatch",
    "Authorization",
)


class Service:
    """The service as one thread uses it.

    The client has settings for a whole process; here they are set in a context of their own, so that nobody else who
    uses the client in this process notices.
    """

    def __init__(self) -> None:
        self._client = _client()
        from odps.config import option_context

        self._context = copy_context()
        self._settings = option_context(_SETTINGS)
        self._context.run(self._settings.__enter__)

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call something of the client."""
        return self._context.run(function, *arguments)

    def exists(self, load: Callable[[], object]) -> bool:
        """Load something of the service, where it is there."""
        from odps.errors import NoSuchObject

        try:
            self.call(load)
        except NoSuchObject:
            return False
        return True

    def table(self, path: TablePath) -> Any:
        """The table, described."""
        table = self.call(self._client.get_table, path.table, path.project)
        self.call(table.reload)
        return table

    def open_session(self, path: TablePath) -> Any:
        """The rows of a table as they are at this moment; they can be read in ranges for a day."""
        from odps.tunnel import TableTunnel

        def create() -> Any:
            tunnel = TableTunnel(self._client, project=path.project)
            return tunnel.create_download_session(
                path.table, partition_spec=path.spec, timeout=SILENCE_TIMEOUT_SECONDS
            )

        return self.call(create)


def _client() -> Any:
    try:
        import odps  # noqa: F401 - so that the message comes before any about keys
    except ImportError as error:
        raise DataError("odps:// paths need pyodps; install penstock[odps]") from error
    return _connected(OdpsAccess.from_environment())


@lru_cache(maxsize=8)
def _connected(access: OdpsAccess) -> Any:
    from odps import ODPS

    return ODPS(access.access_id, access.access_key, endpoint=access.endpoint)


@contextmanager
def explained(path: TablePath) -> Iterator[None]:
    """Turns what the client raises into one line that says what to do."""
    try:
        yield
    except broken_connections() as error:
        raise DataError(f"{path}: {reason(error)}") from error


def broken_connections() -> tuple[type[Exception], ...]:
    """What the client raises when a connection breaks or the service refuses."""
    from odps.errors import ODPSError
    from odps.tunnel.pb.errors import DecodeError
    from requests.packages.urllib3.exceptions import HTTPError  # type: ignore[import-not-found] # an alias

    return OSError, EOFError, ODPSError, HTTPError, DecodeError, pa.ArrowInvalid


def reason(error: BaseException) -> str:
    """What an error of the client means."""
    names = [kind.__name__ for kind in type(error).__mro__]
    known = [_REASONS[name] for name in names if name in _REASONS]
    message = str(error.args[0] if error.args else error)
    line = (message.splitlines() or names)[0]
    return known[0] if known else f"cannot be read: {line}"


def is_lasting(error: BaseException) -> bool:
    """Whether trying again is of no use."""
    return any(kind.__name__ in _LASTING for kind in type(error).__mro__)
