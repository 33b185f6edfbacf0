"""A run with every kind of state, killed with SIGKILL at chosen and random moments, ends as if nothing had happened."""

import random
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.stateful_run import Kill, lines, traces, train, write_data

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Undisturbed:
    """What a run leaves that nobody kills, and everything it did with files on the way."""

    folder: Path
    operations: list[str]
    left: dict[str, Any]

    def place_of(self, pattern: str, occurrence: int) -> int:
        """The number of an operation, counted from 1."""
        found = [place for place, name in enumerate(self.operations, 1) if re.fullmatch(pattern, name)]
        return found[occurrence]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_data(folder)
    operations = train(folder)
    assert operations is not None
    return Undisturbed(folder, operations, traces(folder))


@pytest.fixture
def folder(tmp_path) -> Path:
    write_data(tmp_path)
    return tmp_path


def test_the_run_has_all_that_could_get_lost(undisturbed):
    left = undisturbed.left
    last = left["steps"][-1]
    end = lines(undisturbed.folder / "run/log.jsonl")[-1]

    assert end["stopped_because"].startswith("auc_click got no better in 4 evaluations")
    assert end["restored_step"] == left["best"]["step"] < end["step"]
    assert last["skipped_batches"] > 1 if "event" in last else end["skipped_batches"] > 1
    assert set(last["train_metrics"]) == {"auc_click", "log_loss_click", "accuracy_move", "xauc_watch"}
    assert last["learning_rate"]["dense"] < 0.01, "the plateau was met"
    assert last["learning_rate"]["sparse"] == 0.001, "the callback lowered it"
    assert {record["checkpoint"] is None for record in left["evaluations"]} == {True, False}


MOMENTS = {
    "before the first step": (r"open /run/\.run\.yaml\..*", 0, 0.0),
    "in the first steps": (r"os.rename /run/\.version\..*", 0, 0.1),
    "while rows are put aside": (r"open /run/nonfinite/.*", 0, 0.0),
    "before a checkpoint is whole": (r"open /run/checkpoints/\.step-20\.tmp/manifest\.json", 0, 0.0),
    "before a checkpoint is visible": (r"os.rename /run/checkpoints/\.step-30\.tmp", 0, 0.0),
    "after a checkpoint, before it is told": (r"os.rename /run/checkpoints/\.step-30\.tmp", 0, 0.002),
    "before an old checkpoint goes": (r"os.rename /run/checkpoints/step-\d+", 0, 0.0),
    "while an old checkpoint goes": (r"os.remove /manifest\.json", 1, 0.0),
    "after the best is saved, before its evaluation is written": (r"open /run/eval_result\.jsonl", 1, 0.0),
    "while evaluating": (r"open /run/log\.jsonl", 9, 0.03),
    "before the last checkpoint": (r"os.mkdir /run/checkpoints/\.step-\d+\.tmp", -1, 0.0),
    "before the last evaluation": (r"os.rename /run/checkpoints/\.step-\d+\.tmp", -1, 0.001),
    "while the best is restored": (r"open /run/checkpoints/step-\d+/rank-00000\.safetensors", -1, 0.0),
    "before the best is marked": (r"os.rename /run/\.best\.json\..*", 0, 0.0),
    "before the end is told": (r"open /run/log\.jsonl", -1, 0.0),
    "before the report": (r"open /run/report\.html", 0, 0.0),
}
"""An operation on a file of the undisturbed run, which of its kind, and how many seconds after it."""


@pytest.mark.parametrize("moment", MOMENTS)
def test_killed_at_a_chosen_moment(moment, undisturbed, folder):
    pattern, occurrence, after_seconds = MOMENTS[moment]

    assert train(folder, kill=Kill(undisturbed.place_of(pattern, occurrence), after_seconds)) is None
    train(folder, resume=True)

    assert traces(folder) == undisturbed.left


@pytest.mark.parametrize("attempt", range(8))
def test_killed_again_and_again_at_random_moments(attempt, undisturbed, folder):
    chance = random.Random(attempt)
    for kill_number in range(6):
        kill = Kill(chance.randrange(1, len(undisturbed.operations) // 2), chance.choice([0.0, 0.02, 0.2]))
        if train(folder, resume=kill_number > 0, kill=kill) is not None:
            break
    train(folder, resume=True)

    assert traces(folder) == undisturbed.left


def test_continuing_a_run_that_is_over_changes_nothing(undisturbed, folder):
    train(folder)
    log = (folder / "run/log.jsonl").read_bytes()

    train(folder, resume=True)

    assert traces(folder) == undisturbed.left
    assert (folder / "run/log.jsonl").read_bytes() == log
