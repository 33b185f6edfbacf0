"""Training killed with SIGKILL at random moments, ten times: each time it ends as if nothing had happened."""

import random

import pytest

from tests.end_to_end.conftest import Workplace, write_run
from tests.end_to_end.runs import losses, parameters, start

pytestmark = pytest.mark.slow
LAST_STEP = 72
RUN_SECONDS = 6.0
"""About how long the run takes from its first import to its last step; kills are spread over it."""


@pytest.mark.parametrize("attempt", range(10))
def test_killed_at_a_random_moment(attempt, trained, tmp_path):
    place = Workplace(tmp_path, trained.data, write_run(tmp_path / "run.yaml", trained.data))
    process = start(place, "train", "run.yaml")
    moment = random.Random(attempt).uniform(1.0, RUN_SECONDS)
    try:
        process.wait(timeout=moment)
    except TimeoutError:
        pass
    process.kill()
    process.communicate(timeout=60)

    done = place.penstock("train", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert parameters(place, LAST_STEP) == parameters(trained, LAST_STEP)
    assert losses(place) == losses(trained)
