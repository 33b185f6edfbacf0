"""Which versions of packages are installed, without importing them."""

from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version

DECISIVE_PACKAGES = ("penstock", "torch", "torchrec", "fbgemm-gpu-cpu", "fbgemm-gpu", "pyarrow", "numpy")
"""The packages that decide what a run computes; runs and checkpoints say which they were made with."""


def installed_versions(packages: Sequence[str] = DECISIVE_PACKAGES) -> dict[str, str]:
    """The version of each of these packages; one that is not installed is left out."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
