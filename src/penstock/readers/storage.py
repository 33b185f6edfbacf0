"""Where bytes come from: a local file, or whatever else a path may name."""

import pyarrow as pa

from penstock.config.errors import DataError


def open_input(path: str) -> pa.NativeFile:
    """A file that can be read from any offset; `read_at(num_bytes, offset)` moves nothing."""
    try:
        return pa.OSFile(path, "rb")
    except PermissionError as error:
        raise DataError(f"{path}: no permission to read this file") from error
    except OSError as error:
        raise DataError(f"{path}: cannot be opened: {error.strerror or error}") from error
