"""Files that exist, but not for us."""

import pytest

from tests.privileges import without_privileges


@pytest.mark.parametrize("name", ["run.yaml", "clicks.parquet"])
def test_no_permission_to_read(desk, assert_expected, name):
    desk.folder.chmod(0o755)
    assert desk.penstock("check", "run.yaml").exit_code == 0  # also: everything is imported while we may
    (desk.folder / name).chmod(0o000)

    with without_privileges():
        done = desk.penstock("check", "run.yaml")

    assert_expected(done.stderr)
    assert done.exit_code == 1


def test_no_permission_to_write_the_model_dir(desk, assert_expected):
    assert desk.penstock("train", "run.yaml", "--model_dir", "before").exit_code == 0  # imports everything
    desk.folder.chmod(0o555)

    with without_privileges():
        done = desk.penstock("train", "run.yaml")

    assert_expected(done.stderr)
    assert done.exit_code == 1
