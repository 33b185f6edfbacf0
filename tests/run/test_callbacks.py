"""Objects that a user hangs into a training run; tests/library shows what they are told, and when."""

import re
import sqlite3
from pathlib import Path

import pytest

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import ConfigError
from tests.run.training_runs import desk_elsewhere, log_of, parameters, steps_of, trained

RARELY = {"train_config.save_checkpoints_steps": 0, "train_config.num_epochs": 2}


class StopAt:
    """Asks for a checkpoint at step 1, and to stop at another step."""

    def __init__(self, step):
        self.step = step

    def on_log(self, step, metrics, control):
        if step == 1:
            control.save()
        if step == self.step:
            control.stop("enough for today")


def without_end(desk):
    """The log as a kill after the last checkpoint leaves it."""
    log = desk.folder / "run/log.jsonl"
    log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if '"end"' not in line))


def test_a_stop_that_a_kill_came_before_still_stops_and_a_stopped_run_goes_on_when_continued(desk):
    stopped = trained(desk, RARELY, callbacks=[StopAt(2)])
    assert CheckpointStore(stopped.checkpoint.parent).steps() == [1, 2]
    lines = steps_of(stopped.model_dir)
    without_end(desk)
    again = trained(desk, RARELY, resume=True, callbacks=[StopAt(2)])

    for result in (stopped, again):
        assert (result.steps, result.stopped_because, result.evaluated_step) == (2, "enough for today", 2)
        assert result.checkpoint.name == "step-2"
    assert log_of(again.model_dir)[-1]["stopped_because"] == "enough for today"
    assert steps_of(again.model_dir) == lines

    further = trained(desk, RARELY, resume=True, callbacks=[StopAt(2)])
    assert (further.steps, further.stopped_because) == (6, None)


class Halve:
    """Halves the rate of one optimizer once an evaluation is done; counts how often it did."""

    def __init__(self):
        self.times = 0

    def on_eval(self, step, metrics, control):
        self.times += 1
        control.set_learning_rate(0.1 / 2**self.times, "dense")

    def state_dict(self):
        return {"times": self.times}

    def load_state_dict(self, state):
        self.times = state["times"]


class CountSaves:
    """Counts checkpoints, and remembers with which evaluation each came."""

    def __init__(self):
        self.saves = []

    def on_save(self, step, metrics, control):
        self.saves.append([step, sorted(metrics)])

    def state_dict(self):
        return {"saves": self.saves}

    def load_state_dict(self, state):
        self.saves = state["saves"]


TWO_EPOCHS = {"train_config.num_epochs": 2}


@pytest.fixture(scope="module")
def in_one(tmp_path_factory):
    """Lines and parameters of a run that was never stopped."""
    with desk_elsewhere(tmp_path_factory) as desk:
        whole = trained(desk, TWO_EPOCHS, callbacks=[Halve(), CountSaves()])
        return steps_of(whole.model_dir), parameters(whole.checkpoint)


@pytest.mark.parametrize("stopped_after", [1, 3])
def test_callbacks_and_their_rates_go_on_exactly_after_a_resume(desk, in_one, stopped_after):
    """Callbacks hear of the checkpoint that a run continues from once more: a kill may have come before they did."""
    shorter = {"train_config.num_epochs": None, "train_config.num_steps": stopped_after}

    trained(desk, shorter, callbacks=[Halve(), CountSaves()])
    resumed = trained(desk, TWO_EPOCHS, resume=True, callbacks=[Halve(), CountSaves()])

    assert (steps_of(resumed.model_dir), parameters(resumed.checkpoint)) == in_one
    rates = [record["learning_rate"]["dense"] for record in in_one[0]]
    assert rates[:3] == [0.1, 0.05, 0.025]  # from the next step on


class TooFewArguments:
    def on_eval(self, step):
        """Forgets two of its arguments."""


class NoMethod:
    on_log = "loss"


@pytest.mark.parametrize(
    ("callbacks", "problem"),
    [
        (
            [TooFewArguments()],
            (
                "TooFewArguments.on_eval takes (step), but is called with (step, metrics, control) "
                "(too many positional arguments)"
            ),
        ),
        (StopAt(1), "expected a list of objects, not StopAt; write [callback]"),
        ([NoMethod()], "NoMethod has none of the methods on_log, on_eval, on_save, on_end"),
    ],
)
def test_what_could_not_be_called_is_refused_before_anything_is_written(desk, callbacks, problem):
    with pytest.raises(ConfigError) as caught:
        trained(desk, callbacks=callbacks)

    assert str(caught.value) == f"callbacks: {problem}"
    assert not (desk.folder / "run").exists()


PAGE = Path(__file__).parents[2] / "docs" / "training.md"


def test_the_callback_of_the_page_feeds_its_tracker(desk):
    _, _, section = PAGE.read_text(encoding="utf-8").partition("## Callbacks")
    (program,) = re.findall(r"^```python\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    names = {}

    exec(compile(program, str(PAGE), "exec"), names)

    found = sqlite3.connect(desk.folder / "tracker.db").execute(
        "SELECT run, step, event, name FROM numbers WHERE name IN ('loss', 'auc') ORDER BY rowid"
    )
    assert found.fetchall() == [
        ("run", 1, "train", "loss"),
        ("run", 2, "train", "loss"),
        ("run", 2, "eval", "auc"),
    ]
    assert names["result"].steps == 2
