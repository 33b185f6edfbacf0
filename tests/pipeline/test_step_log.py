"""What stands beside the bar while a run trains."""

import re

from penstock.pipeline.step_log import rates_line
from tests.cli.desk import Desk


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
