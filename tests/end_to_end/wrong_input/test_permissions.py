"""Files that exist, but not for us."""

import pytest

from tests.cli.desk import Desk
from tests.privileges import without_privileges


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


def test_no_permission_to_write_the_model_dir(desk: Desk) -> None:
    assert desk.penstock("train", "run.yaml", "--model_dir", "before").exit_code == 0  # imports everything
    desk.folder.chmod(0o555)

    with without_privileges():
        done = desk.penstock("train", "run.yaml")

    assert done.stderr == "error: run.yaml: model_dir: no permission to write in '.'\n"
    assert done.exit_code == 1
