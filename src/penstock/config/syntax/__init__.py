"""Text -> plain data with positions, in three syntaxes.

Each reader turns text into nested dicts, lists and scalars, remembers the line and column of every key, and
collects what is wrong with the text instead of stopping at the first problem. None of them judges values;
they look at the shape of the root section only where the syntax needs it.
"""

from collections.abc import Callable
from importlib import import_module
from typing import cast

from penstock.config.section import Section
from penstock.config.syntax.parsed import Parsed

Reader = Callable[[str, type[Section]], Parsed]

SYNTAX_OF_SUFFIX = {
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".config": "text",
    ".pbtxt": "text",
    ".textproto": "text",
}
"""File name endings and the syntax they stand for."""

_READERS = {
    "yaml": "penstock.config.syntax.yaml_syntax:read_yaml",
    "json": "penstock.config.syntax.json_syntax:read_json",
    "text": "penstock.config.syntax.text_syntax:read_text",
}


def read(text: str, syntax: str, root: type[Section]) -> Parsed:
    """Reads text in one of the syntaxes 'yaml', 'json' and 'text'. Only that one is imported."""
    module, _, name = _READERS[syntax].partition(":")
    reader = cast(Reader, getattr(import_module(module), name))
    try:
        return reader(text.removeprefix("\ufeff"), root)
    except RecursionError:
        parsed = Parsed()
        parsed.give_up("is nested too deeply")
        return parsed
