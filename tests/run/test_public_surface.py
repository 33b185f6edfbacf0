"""What `import penstock` offers: cheap to import, and still there after every module was imported."""

import importlib
import importlib.metadata
import inspect
import pkgutil
import subprocess
import sys

import pytest

import penstock

LOADED = """
import sys
import penstock
print(*(name for name in ("torch", "numpy", "pyarrow", "pydantic") if name in sys.modules))
"""


def test_importing_loads_nothing_that_takes_long():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_every_module_can_be_imported_and_hides_no_public_name():
    modules = [module.name for module in pkgutil.walk_packages(penstock.__path__, "penstock.")]

    for module in modules:
        importlib.import_module(module)

    assert len(modules) > 200
    for name in penstock.__all__:
        public = getattr(penstock, name)
        assert callable(public)
        assert not inspect.ismodule(public)
        assert inspect.getdoc(public), name


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match=r"^module 'penstock' has no attribute 'trian'$"):
        _ = penstock.trian


def test_a_loop_over_arrays_imports_no_torch():
    code = (
        "import sys, penstock, numpy; list(penstock.from_arrays({'x': numpy.zeros(3)}).batch(2));"
        "print(*(name for name in ('torch', 'tensorflow', 'numba') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []
