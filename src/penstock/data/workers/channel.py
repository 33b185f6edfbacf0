"""A connection between two processes, typed for both who check types and who run."""

from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Channel = Connection[Any, Any]
else:
    Channel = Connection
