"""The user's function from a raw file to samples, by its place in the run file."""

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from penstock.config.errors import ConfigError
from penstock.config.registry import Registry
from penstock.prep.preparing.one_line import in_one_line
from penstock.runtime.checksums import file_checksum

EXTRACT = "preprocessing.extract"

Extract = Callable[[str], Iterable[Any]]
"""Called with the path of a file; gives samples, dicts of whole arrays, or Arrow record batches."""


def load_extract(place: str) -> Extract:
    """The function at "package.module:function"."""
    if ":" not in place:
        raise ConfigError.at(EXTRACT, f"is '{place}'; a place is written \"package.module:function\"")
    registry: Registry[Any] = Registry("extract", {})
    try:
        function = registry.get(place)
    except ConfigError as error:
        hint = "; is its folder on PYTHONPATH?" if "there is no module" in str(error) else ""
        raise ConfigError(f"{error}{hint}") from error
    except (Exception, SystemExit) as error:  # the user's module may fail in any way, and call sys.exit
        raise ConfigError.at(EXTRACT, f"'{place}' cannot be imported: {in_one_line(error)}") from error
    if not callable(function):
        raise ConfigError.at(EXTRACT, f"'{place}' is {function!r}; name a function that takes a path")
    return cast(Extract, function)


def source_checksum(place: str) -> int | None:
    """Of the module's text, so that another version of the function is noticed; None where there is no text."""
    file = module_file(place)
    return None if file is None else file_checksum(file)


def module_file(place: str) -> Path | None:
    """The file with the text of the function; None where there is none."""
    module = inspect.getmodule(inspect.unwrap(load_extract(place)))
    file = None if module is None else getattr(module, "__file__", None)
    return None if file is None or not Path(file).is_file() else Path(file)
