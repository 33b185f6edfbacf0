"""Batch files: some arrays with the same samples in one file.

`save_batch` writes them, `load_batch` reads them, `read_header` tells what is in a file without reading a value: for
each array its type, shape, checksum and where its bytes lie, so that a merge copies bytes and makes no array.
"""

from penstock.store.batch_file.files import (
    SUFFIXES,
    is_pickled,
    load_batch,
    read_array,
    read_header,
    save_batch,
)
from penstock.store.batch_file.header import BatchHeader, BatchRecord, StoredArray

__all__ = [
    "SUFFIXES",
    "BatchHeader",
    "BatchRecord",
    "StoredArray",
    "is_pickled",
    "load_batch",
    "read_array",
    "read_header",
    "save_batch",
]
