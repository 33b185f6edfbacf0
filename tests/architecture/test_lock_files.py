"""The lock files name everything that is imported, at the versions that are installed.

They are installed without dependency resolution, so nobody but this test notices a missing name.
"""

import ast
import importlib.metadata
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from lock_file import normalized, read_lock

ROOT = Path(__file__).parents[2]
RUNTIME = {pin.name: pin.version for pin in read_lock(ROOT / "requirements" / "cpu.lock")}
DEV = {pin.name: pin.version for pin in read_lock(ROOT / "requirements" / "dev.lock")}
EVERYTHING = RUNTIME | DEV

STANDS_IN_FOR = {"fbgemm-gpu": "fbgemm-gpu-cpu"}
"""torchrec asks for the CUDA build; the CPU build fills the same module."""
OPTIONAL = {
    *("h5py", "odps", "onnx", "onnxruntime", "ray", "requests", "sentencepiece", "tensorflow", "tokenizers"),
}
"""Extras: imported only where they are asked for (`pytest.importorskip` in tests)."""
OWN = {
    "penstock",
    "compare_checkouts",
    "example_runs",
    "lock_file",
    "installed_files",
    "setup_venv",
    "tests",
    "measuring",
}


def requirements_of(package: str) -> Iterator[Requirement]:
    for text in importlib.metadata.requires(package) or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield requirement


@pytest.mark.parametrize(
    ("folders", "locked"),
    [(["src"], RUNTIME), (["tests", "tools", "benchmarks", "examples"], EVERYTHING)],
    ids=["sources", "tests and tools"],
)
def test_what_is_imported_is_locked(folders: list[str], locked: dict[str, str]):
    """Also what is imported inside functions."""
    providers = importlib.metadata.packages_distributions()
    missing = {}
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in {name.partition(".")[0] for name in names} - sys.stdlib_module_names - OWN - OPTIONAL:
                if not any(normalized(provider) in locked for provider in providers.get(name, [])):
                    missing[name] = str(path.relative_to(ROOT))

    assert missing == {}


@pytest.mark.parametrize(("package", "version"), sorted(EVERYTHING.items()))
def test_the_installed_version_is_the_locked_one(package: str, version: str):
    assert importlib.metadata.version(package) == version


@pytest.mark.parametrize("locked", [RUNTIME, EVERYTHING], ids=["cpu.lock", "cpu.lock + dev.lock"])
def test_what_the_locked_packages_require_is_locked_too_and_fits(locked: dict[str, str]):
    unmet = []
    for package in locked:
        for requirement in requirements_of(package):
            needed = normalized(requirement.name)
            version = locked.get(STANDS_IN_FOR.get(needed, needed))
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                unmet.append(f"{package} needs {requirement}, locked is {version}")

    assert unmet == []


def test_what_the_package_declares_is_locked_and_fits():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    unmet = [
        text
        for text in project["dependencies"]
        if not Requirement(text).specifier.contains(RUNTIME.get(normalized(Requirement(text).name), "0"))
    ]

    assert unmet == []


def test_no_cuda_package_is_locked():
    assert [name for name in EVERYTHING if name.startswith(("nvidia", "cuda", "triton"))] == []
    assert RUNTIME["torch"].endswith("+cpu") == (sys.platform == "linux")
