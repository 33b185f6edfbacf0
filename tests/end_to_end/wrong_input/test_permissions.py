"""Files that exist, but not for us."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.cli.desk import Desk

NOBODY = 65534
AS_ROOT = os.geteuid() == 0


@contextmanager
def without_privileges() -> Iterator[None]:
    """Root may read everything: for the length of the block, be somebody else."""
    if AS_ROOT:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if AS_ROOT:
            os.seteuid(0)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("run.yaml", "run.yaml: cannot be read: Permission denied"),
        ("clicks.parquet", "clicks.parquet: no permission to read this file"),
    ],
)
def test_no_permission_to_read(desk: Desk, name: str, line: str) -> None:
    desk.folder.chmod(0o755)
    assert desk.penstock("check", "run.yaml").exit_code == 0  # also: everything is imported while we may
    (desk.folder / name).chmod(0o000)

    with without_privileges():
        done = desk.penstock("check", "run.yaml")

    assert done.stderr == f"error: {line}\n"
    assert done.exit_code == 1


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_no_permission_to_write_the_model_dir(desk: Desk) -> None:
    desk.folder.chmod(0o555)

    done = desk.penstock("train", "run.yaml")

    assert done.stderr == "error: model_dir: no permission to write in '.'\n"
    assert done.exit_code == 1
