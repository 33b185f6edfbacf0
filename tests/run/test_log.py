"""What stands beside the bar while a run trains, and the lines of its log."""

import os
import re
import signal

from penstock.observe.log import rates_line
from tests.cli.desk import Desk
from tests.run.training_runs import STEPS_OF_2, log_of, steps_of, trained


def test_a_single_rate_needs_no_name():
    assert rates_line({"dense": 0.0005}) == "0.0005"


def test_of_several_rates_each_is_named():
    assert rates_line({"sparse": 0.05, "dense": 0.0005, "part[wide]": 1 / 3}) == (
        "sparse 0.05, dense 0.0005, part[wide] 0.333"
    )


def test_a_run_shows_its_rates_by_name(desk: Desk):
    done = desk.penstock("train", "run.yaml", "--plain")

    [line] = re.findall(r"^train: step 2/2 .*$", done.stderr, re.MULTILINE)
    assert "  lr sparse 0.1, dense 0.1  memory " in line


def test_a_run_that_ends_between_two_lines_tells_of_its_last_steps(desk: Desk):
    """Three steps an epoch, a line every two: that of step 3 is of one step, and the next begins where it began."""
    every_two = {"train_config.log_step_count_steps": 2}
    whole = trained(desk, every_two | {"model_dir": "whole", "train_config.num_epochs": 2})
    trained(desk, every_two)
    assert [line["step"] for line in steps_of(desk.folder / "run")] == [2, 3]

    again = trained(desk, every_two | {"train_config.num_epochs": 2}, resume=True)

    in_one, in_two = steps_of(whole.model_dir), steps_of(again.model_dir)
    assert [line["step"] for line in in_two] == [2, 3, 4, 6]
    assert [line for line in in_two if line["step"] != 3] == in_one


def test_an_interrupted_run_writes_no_line_out_of_turn_and_says_that_it_goes_on(desk: Desk):
    class Interrupt:
        def on_save(self, step, metrics, control):
            if step == 1:
                os.kill(os.getpid(), signal.SIGINT)

    result = trained(desk, STEPS_OF_2 | {"train_config.log_step_count_steps": 2}, callbacks=[Interrupt()])

    assert (result.steps, result.exit_code) == (1, 130)
    assert steps_of(result.model_dir) == []
    assert log_of(result.model_dir)[-1]["stopped_because"] == "a signal; --continue_train goes on"
