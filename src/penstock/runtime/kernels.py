"""Kernels: loops that numba compiles once per machine, and that run without the GIL.

numba keeps what it compiled beside the source, and looks at a kernel's own file alone to see whether that is stale. But
a kernel has functions and constants of other files compiled in: its key here covers every module of its package that
its file imports, directly or not.

Importing this module imports numba (about 110 MB): only modules of kernels do.
"""

import ast
import hashlib
import importlib.util
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function at its first call; where no folder can be written, once per process."""
    return _compiled(function, njit(nogil=True)(function))


def view_kernel(function: Callable[..., Any]) -> Any:
    """The same for a function that allocates nothing.

    numba then counts no references to arrays, which costs more than the work where helpers take an array for every
    few bytes of it.
    """
    return _compiled(function, njit(nogil=True, _nrt=False)(function))


def _compiled(function: Callable[..., Any], compiled: Any) -> Any:
    if compiled is function:  # NUMBA_DISABLE_JIT
        return function
    try:
        compiled.enable_caching()
    except RuntimeError:
        return compiled
    package = function.__module__.partition(".")[0]
    compiled._cache._cache_file._source_stamp = _sources_digest(function.__code__.co_filename, package)
    return compiled


@cache
def _sources_digest(file: str, package: str) -> str:
    sources: set[str] = set()
    _collect_sources(file, package, sources)
    return hashlib.sha256(b"".join(Path(source).read_bytes() for source in sorted(sources))).hexdigest()


def _collect_sources(file: str, package: str, found: set[str]) -> None:
    """Add a file, those of its package that it imports, and those that they import."""
    if file in found:
        return
    found.add(file)
    for node in ast.walk(ast.parse(Path(file).read_bytes())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            # What is imported from a package may be a module.
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        for module in modules:
            if module.partition(".")[0] == package and (origin := _origin(module)) is not None:
                _collect_sources(origin, package, found)


def _origin(module: str) -> str | None:
    """The file of a module, None where there is no such module; imports nothing but packages."""
    parent = module.rpartition(".")[0]
    if parent and Path(_origin(parent) or "").name != "__init__.py":
        return None
    spec = importlib.util.find_spec(module)
    return None if spec is None else spec.origin


@kernel
def gather(values: Any, order: Any, out: Any) -> None:
    """Bring the rows at these positions of a column of numbers to `out`: twice as fast as NumPy."""
    for row in range(len(order)):
        out[row] = values[order[row]]
