"""A desk to work at, and one where a run was trained before."""

import shutil
from pathlib import Path

import pytest

from tests.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Six rows, a run file, and the current folder."""
    monkeypatch.chdir(tmp_path)
    return Desk.laid_out_in(tmp_path)


@pytest.fixture(scope="session")
def trained_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a training leaves in its model_dir, not to be changed."""
    folder = tmp_path_factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = Desk.laid_out_in(folder).penstock("train", "run.yaml")
    assert done.exit_code == 0, done.stderr
    return folder / "run"


@pytest.fixture
def trained_desk(desk: Desk, trained_run: Path) -> Desk:
    """A desk where the run was trained."""
    shutil.copytree(trained_run, desk.folder / "run")
    return desk
