"""Objects that a user hangs into a training run."""

import pytest

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import ConfigError
from penstock.training.callbacks import Control, require_callbacks
from penstock.training.learning_rates import LearningRates
from tests.run.training_runs import desk_elsewhere, log_of, parameters, steps_of, trained

RARELY = {"train_config.save_checkpoints_steps": 0, "train_config.num_epochs": 2}

EXPECTED = {
    "auc",
    "binary_cross_entropy",
    "loss",
    "rows_per_second",
    "learning_rate/dense",
    "learning_rate/sparse",
}
"""Numbers that are told, among others that the machine measured."""


class Listener:
    """Writes down what it is told."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda step, metrics, control: self.heard.append(
            (name, step, sorted(EXPECTED & metrics.keys()))
        )


def test_a_callback_is_told_what_happens_in_order(desk):
    listener = Listener()
    sets = {"train_config.log_step_count_steps": 2, "train_config.save_checkpoints_steps": 2}

    trained(desk, sets, callbacks=[listener])

    found = ["auc", "binary_cross_entropy"]
    logged = ["learning_rate/dense", "learning_rate/sparse", "loss", "rows_per_second"]
    assert listener.heard == [
        ("on_log", 2, logged),
        ("on_save", 2, []),
        ("on_eval", 2, found),
        ("on_log", 3, logged),
        ("on_save", 3, found),
        ("on_eval", 3, found),
        ("on_end", 3, found),
    ]


class StopAt:
    """Asks to stop at a step."""

    def __init__(self, step):
        self.step = step

    def on_log(self, step, metrics, control):
        if step == self.step:
            control.stop("enough for today")


def test_a_callback_may_stop_the_run_which_ends_like_any_other(desk):
    result = trained(desk, RARELY, callbacks=[StopAt(2)])

    assert (result.steps, result.stopped_because, result.evaluated_step) == (2, "enough for today", 2)
    assert result.checkpoint.name == "step-2"
    assert log_of(result.model_dir)[-1]["stopped_because"] == "enough for today"


class SaveAt(StopAt):
    """Asks for a checkpoint at a step."""

    def on_log(self, step, metrics, control):
        if step == self.step:
            control.save()


def test_a_callback_may_ask_for_a_checkpoint(desk):
    result = trained(desk, RARELY, callbacks=[SaveAt(2)])

    assert CheckpointStore(result.checkpoint.parent).steps() == [2, 6]


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


def test_a_rate_that_a_callback_sets_holds_from_the_next_step_on(desk):
    result = trained(desk, {"train_config.num_epochs": 1}, callbacks=[Halve()])

    rates = [record["learning_rate"] for record in steps_of(result.model_dir)]
    assert rates == [
        {"sparse": 0.1, "dense": 0.1},
        {"sparse": 0.1, "dense": 0.05},
        {"sparse": 0.1, "dense": 0.025},
    ]


class CountSaves:
    """Counts checkpoints, and remembers with which evaluation each was told."""

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


@pytest.mark.parametrize("stopped_after", [1, 3, 4])
def test_callbacks_and_their_rates_go_on_exactly_after_a_resume(desk, in_one, stopped_after):
    """The checkpoint that a run continues from is told once more, since a kill may have come before that."""
    shorter = {"train_config.num_epochs": None, "train_config.num_steps": stopped_after}

    trained(desk, shorter, callbacks=[Halve(), CountSaves()])
    resumed = trained(desk, TWO_EPOCHS, resume=True, callbacks=[Halve(), CountSaves()])

    assert (steps_of(resumed.model_dir), parameters(resumed.checkpoint)) == in_one


def without_end(desk):
    """The log as a kill after the last checkpoint leaves it."""
    log = desk.folder / "run/log.jsonl"
    log.write_text("".join(line for line in log.read_text().splitlines(keepends=True) if '"end"' not in line))


def test_a_run_that_is_killed_on_its_way_to_a_stop_still_stops(desk):
    stopped = trained(desk, RARELY, callbacks=[StopAt(2)])
    without_end(desk)
    again = trained(desk, RARELY, resume=True, callbacks=[StopAt(2)])

    assert (again.steps, again.stopped_because) == (2, "enough for today")
    assert log_of(again.model_dir)[-1]["stopped_because"] == "enough for today"
    assert steps_of(again.model_dir) == steps_of(stopped.model_dir)


def test_a_run_that_a_callback_stopped_goes_on_when_it_is_continued(desk):
    trained(desk, RARELY, callbacks=[StopAt(2)])
    result = trained(desk, RARELY, resume=True, callbacks=[StopAt(2)])

    assert (result.steps, result.stopped_because) == (6, None)


def test_a_stop_is_forgotten_by_a_run_without_callbacks(desk):
    trained(desk, RARELY, callbacks=[StopAt(2)])
    without_end(desk)

    assert trained(desk, RARELY, resume=True).steps == 6


def test_an_object_without_a_method_of_a_callback_is_refused(desk):
    with pytest.raises(
        ConfigError, match="callbacks: dict has none of the methods on_log, on_eval, on_save, on_end"
    ):
        trained(desk, callbacks=[{}])

    assert not (desk.folder / "run").exists()


class TooFewArguments:
    def on_eval(self, step):
        """Forgets two of its arguments."""


class NoMethod:
    on_log = "loss"


@pytest.mark.parametrize(
    ("callbacks", "told"),
    [
        (
            [TooFewArguments()],
            (
                "callbacks: TooFewArguments.on_eval takes (step), but is called with (step, metrics, control) "
                "(too many positional arguments)"
            ),
        ),
        ([StopAt], "callbacks: StopAt is a class; give an object of it: StopAt(...)"),
        (StopAt(1), "callbacks: expected a list of objects, not StopAt; write [callback]"),
        ([NoMethod()], "callbacks: NoMethod has none of the methods on_log, on_eval, on_save, on_end"),
        (
            [print],
            "callbacks: builtin_function_or_method has none of the methods on_log, on_eval, on_save, on_end",
        ),
    ],
)
def test_what_could_not_be_called_is_told_in_one_line(callbacks, told):
    with pytest.raises(ConfigError) as caught:
        require_callbacks(callbacks)

    assert str(caught.value) == told


def test_a_method_may_have_more_arguments_of_its_own():
    class Generous:
        def on_log(self, step, metrics, control, *rest, loud=False):
            """Takes what it is given."""

    require_callbacks([Generous()])


def test_a_rate_is_a_number():
    with pytest.raises(ConfigError, match=r"set_learning_rate: a rate is a number or None, not '0\.1'"):
        Control(LearningRates({})).set_learning_rate("0.1")
