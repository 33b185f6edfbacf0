"""The docstrings under the fields of a section.

Python does not keep them, so they are read from the source, and only when someone asks: pydantic can do the
same for every class at import, which would make every command wait for what only `penstock schema` shows.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from functools import cache

from penstock.config.section import Section


@cache
def field_docs(section: type[Section]) -> Mapping[str, str]:
    """The docstring of each field that has one; a field that is declared again has its newest."""
    docs: dict[str, str] = {}
    for owner in reversed(section.__mro__):
        if issubclass(owner, Section):
            docs.update(_docs_of_module(owner.__module__).get(owner.__name__, {}))
    return {name: docs[name] for name in section.model_fields if name in docs}


@cache
def _docs_of_module(name: str) -> Mapping[str, Mapping[str, str]]:
    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (OSError, TypeError, KeyError):  # a class made at a prompt, or shipped without its source
        return {}
    return {
        node.name: dict(_docs_of_class(node)) for node in ast.walk(tree) if isinstance(node, ast.ClassDef)
    }


def _docs_of_class(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, after in zip(node.body, node.body[1:], strict=False):
        match field, after:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)
