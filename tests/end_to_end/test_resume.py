"""Stopping and going on: the same bytes as a run that was never interrupted."""

import signal
from pathlib import Path

import pytest

from tests.end_to_end.conftest import Workplace, write_run
from tests.end_to_end.runs import evaluations, losses, parameters, start
from tests.end_to_end.stopping_rate import STOPPABLE, stop_after


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, sample_clicks: Path) -> Workplace:
    """A run that can be stopped, and was not."""
    folder = tmp_path_factory.mktemp("whole")
    run_file = write_run(folder / "run.yaml", sample_clicks, train_config=STOPPABLE)
    place = Workplace(folder, sample_clicks, run_file)
    done = place.penstock("train", "run.yaml")
    assert done.code == 0, done.err
    return place


@pytest.fixture
def stoppable(workplace: Workplace) -> Workplace:
    """A fresh folder with the run file of the whole run."""
    write_run(workplace.run_file, workplace.data, train_config=STOPPABLE)
    return workplace


def assert_same(one: Workplace, other: Workplace) -> None:
    assert parameters(one, 72) == parameters(other, 72)
    assert losses(one) == losses(other)
    assert evaluations(one) == evaluations(other)


def test_stopped_by_ctrl_c_and_continued(whole, stoppable, monkeypatch):
    with monkeypatch.context() as patch:
        for name, value in stop_after(16, signal.SIGINT).items():
            patch.setenv(name, value)
        stopped = stoppable.penstock("train", "run.yaml")

    assert stopped.code == 130, stopped.err
    assert "Traceback" not in stopped.err
    steps = {path.name for path in (stoppable.folder / "run/checkpoints").iterdir()}
    assert steps == {"step-10", "step-17"}

    done = stoppable.penstock("train", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert "continuing from run/checkpoints/step-17" in done.err
    assert_same(stoppable, whole)


@pytest.mark.slow
def test_killed_and_continued(whole, stoppable):
    process = start(stoppable, "train", "run.yaml", environment=stop_after(24, signal.SIGKILL))
    _, told = process.communicate(timeout=300)
    assert process.returncode == -signal.SIGKILL, told

    done = stoppable.penstock("train", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert "continuing from run/checkpoints/step-20" in done.err
    assert_same(stoppable, whole)
