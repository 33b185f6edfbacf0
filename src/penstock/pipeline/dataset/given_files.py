"""What `read_csv` and its like are given: paths -> files, and types of columns -> fields as in a run file."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from penstock.config.errors import ConfigError, DataError
from penstock.pipeline.dataset.arguments import kind_of, mapping_argument
from penstock.pipeline.dataset.wording import own_words
from penstock.readers.files import DataFile, list_files
from penstock.readers.sections import Field, parse_field_type

Paths: TypeAlias = "str | os.PathLike[str] | Sequence[str | os.PathLike[str]]"
"""A file, a directory, a glob, or several of these."""

_TYPE_NAMES = {"FLOAT32": "FLOAT", "FLOAT64": "DOUBLE", "STR": "STRING"}


def files_at(paths: Paths) -> list[DataFile]:
    """The files that paths mean, each once."""
    several = [paths] if isinstance(paths, str | bytes | os.PathLike) else paths
    if not isinstance(several, Iterable):
        raise ConfigError.at("paths", f"is {kind_of(paths)}; give a path, or a list of paths")
    with own_words():
        files = [file for path in several for file in list_files(path_text(path))]
    if not files:
        raise DataError("no data path is given")
    twice = sorted(path for path, count in Counter(file.path for file in files).items() if count > 1)
    if twice:
        raise DataError(f"{twice[0]} is named twice; its rows would be read twice")
    return files


def path_text(path: Any) -> str:
    """A path as text."""
    if not isinstance(path, str | os.PathLike):
        raise ConfigError.at("paths", f"{path!r} is no path; give a text or a pathlib.Path")
    return os.fspath(path)


def fields_of(types: Any) -> list[Field]:
    """The columns whose types are said, as a run file's input_fields says them."""
    given = {} if types is None else mapping_argument("types", types, "{'age': 'int64'}")
    try:
        return [Field(input_name=name, input_type=_field_type(name, kind)) for name, kind in given.items()]
    except ValueError as error:
        raise ConfigError.at("types", str(error)) from error


def _field_type(name: str, kind: Any) -> Any:
    if not isinstance(kind, str):
        raise ConfigError.at("types", f"of '{name}' is {kind!r}; write it as a text, such as 'int64'")
    return parse_field_type(_TYPE_NAMES.get(kind.upper(), kind))
