"""Files that are torn or replaced: one clear line, and nothing that was trained is lost."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.end_to_end.conftest import Workplace, write_run
from tests.end_to_end.runs import losses, parameters, start, wait_until_stopped
from tests.end_to_end.stopping_rate import STOPPABLE, stop_after

pytestmark = pytest.mark.slow
LAST_STEP = 72


@pytest.fixture
def place(trained: Workplace, tmp_path: Path) -> Workplace:
    """A run over a copy of the data, which may be damaged."""
    data = tmp_path / "clicks"
    shutil.copytree(trained.data, data)
    return Workplace(tmp_path, data, write_run(tmp_path / "run.yaml", data, train_config=STOPPABLE))


def start_and_stop_after(place: Workplace, step: int, *words: str) -> "subprocess.Popen[str]":
    """A training that stands still after a step, until it gets SIGCONT."""
    process = start(place, "train", "run.yaml", *words, environment=stop_after(step, signal.SIGSTOP))
    wait_until_stopped(process)
    return process


def middle_file(place: Workplace) -> Path:
    return sorted((place.data / "train").iterdir())[1]


def test_a_truncated_file_in_the_middle_of_the_set_stops_the_run_before_it_starts(place):
    whole = middle_file(place).read_bytes()
    middle_file(place).write_bytes(whole[: len(whole) // 2])

    done = place.penstock("train", "run.yaml")

    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert f"{middle_file(place)}: is not a whole Parquet file" in done.err
    assert not (place.folder / "run").exists()


def test_a_file_that_is_damaged_while_the_run_reads_leaves_its_checkpoints(place, trained):
    """The footer stays, so that only reading the rows can find it."""
    path = middle_file(place)
    whole = path.read_bytes()
    third = len(whole) // 3
    path.write_bytes(whole[:third] + bytes(third) + whole[2 * third :])

    done = place.penstock("train", "run.yaml")

    assert done.code == 1
    assert done.err.splitlines()[-1].startswith(f"error: {path}: cannot be read to its end, it is damaged: ")
    path.write_bytes(whole)
    done = place.penstock("train", "run.yaml", "--continue_train")
    assert done.code == 0, done.err
    assert parameters(place, LAST_STEP) == parameters(trained, LAST_STEP)


def test_a_file_that_was_replaced_between_save_and_resume_is_refused(place, trained):
    process = start_and_stop_after(place, 30)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGCONT)
    process.communicate(timeout=300)
    kept = place.folder / "kept.parquet"
    shutil.move(middle_file(place), kept)
    shutil.copy(sorted((place.data / "test").iterdir())[0], place.data / "train" / "part-00001.parquet")
    saved = sorted(os.listdir(place.folder / "run" / "checkpoints"))

    done = place.penstock("train", "run.yaml", "--continue_train")

    assert done.code == 1
    assert len(done.err.splitlines()) == 1
    assert f"{middle_file(place)}: is not the file that the position was saved with" in done.err
    assert sorted(os.listdir(place.folder / "run" / "checkpoints")) == saved
    shutil.move(kept, middle_file(place))
    assert place.penstock("train", "run.yaml", "--continue_train").code == 0
    assert losses(place) == losses(trained)


def test_the_batch_of_a_killed_worker_is_done_again_and_the_run_goes_on(place, trained):
    process = start_and_stop_after(place, 20, "--set", "data_config.num_workers=2")
    children = psutil.Process(process.pid).children(recursive=True)
    workers = [child for child in children if child.ppid() != process.pid]
    os.kill(workers[-1].pid, signal.SIGKILL)
    process.send_signal(signal.SIGCONT)
    _, told = process.communicate(timeout=300)

    assert process.returncode == 0, told
    assert "was killed by SIGKILL" in told
    assert parameters(place, LAST_STEP) == parameters(trained, LAST_STEP)
    assert losses(place) == losses(trained)
