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
from functools import cache, partial
from pathlib import Path
from typing import Any

from numba import njit


def kernel(function: Callable[..., Any], *, allocates: bool = True) -> Any:
    """Compile a function at its first call; where no folder can be written, once per process."""
    options = {} if allocates else {"_nrt": False}
    compiled: Any = njit(nogil=True, **options)(function)
    if compiled is function:  # NUMBA_DISABLE_JIT
        return function
    try:
        compiled.enable_caching()
    except RuntimeError:
        return compiled
    package = function.__module__.partition(".")[0]
    compiled._cache._cache_file._source_stamp = _sources_digest(function.__code__.co_filename, package)
    return compiled


view_kernel = partial(kernel, allocates=False)
"""The same for a function that allocates nothing.

numba then counts no references to arrays, which costs more than the work where helpers take an array for every few
bytes of it.
"""


@cache
def _sources_digest(file: str, package: str) -> str:
    """Of a file, those of its package that it imports, and those that they import."""
    found, waiting = {file}, [file]
    imported: list[tuple[str, list[str]]]
    while waiting:
        for node in ast.walk(ast.parse(Path(waiting.pop()).read_bytes())):
            if isinstance(node, ast.Import):
                imported = [(alias.name, []) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                imported = [(node.module, [alias.name for alias in node.names])]
            else:
                continue
            for module, names in imported:
                if module.partition(".")[0] != package:
                    continue
                specs = [importlib.util.find_spec(module)]  # imports nothing but packages
                if specs[0] is not None and specs[0].submodule_search_locations is not None:
                    # What is imported from a package may be a module.
                    specs += [importlib.util.find_spec(f"{module}.{name}") for name in names]
                origins = {spec.origin for spec in specs if spec is not None and spec.origin is not None}
                waiting += origins - found
                found |= origins
    return hashlib.sha256(b"".join(Path(source).read_bytes() for source in sorted(found))).hexdigest()


@kernel
def gather(values: Any, order: Any, out: Any) -> None:
    """Bring the rows at these positions of a column of numbers to `out`: twice as fast as NumPy."""
    for row in range(len(order)):
        out[row] = values[order[row]]
