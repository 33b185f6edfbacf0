"""Versions of installed packages."""

from importlib.metadata import version

from penstock.runtime.versions import installed_versions


def test_packages_that_are_not_installed_are_left_out():
    assert installed_versions(["pytest", "no-such-package"]) == {"pytest": version("pytest")}


def test_a_run_names_what_decides_its_numbers():
    assert {"penstock", "torch", "torchrec", "pyarrow", "numpy"} <= installed_versions().keys()
