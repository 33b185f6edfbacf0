"""A pickle, read; what is wrong with it, in one line."""

from typing import IO, Any

from penstock.config.errors import DataError
from penstock.store.plain_pickle.instructions import run
from penstock.store.plain_pickle.values import NotPlain, check_plain, shown


def read_plain_pickle(stream: IO[bytes], place: str) -> Any:
    """What a pickle holds, if it is plain; DataError, and nothing done, if it is more or is damaged."""
    content = stream.read()
    try:
        value = run(content)
        check_plain(value, len(content))
    except NotPlain as error:
        raise DataError(
            f"{place}: its pickle asks for {error}; only plain containers, numbers, text and NumPy arrays are read, "
            "and nothing of it was run"
        ) from None
    except Exception as error:
        raise DataError(f"{place}: is no whole pickle of plain data: {_reason(error)}") from error
    return value


def _reason(error: Exception) -> str:
    return (
        "it is cut short or damaged" if isinstance(error, LookupError) else shown(str(error) or repr(error))
    )
