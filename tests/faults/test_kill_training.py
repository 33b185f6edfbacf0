"""Training killed with SIGKILL at random moments, ten times: each time it ends as if nothing had happened."""

import random
import time

import pytest

from tests.end_to_end.conftest import Workplace, write_run
from tests.end_to_end.runs import evaluations, losses, parameters, start, wait_for_step

pytestmark = pytest.mark.slow
LAST_STEP = 72


@pytest.mark.parametrize("attempt", range(10))
def test_killed_at_a_random_moment(attempt, trained, tmp_path):
    place = Workplace(tmp_path, trained.data, write_run(tmp_path / "run.yaml", trained.data))
    chance = random.Random(attempt)
    process = start(place, "train", "run.yaml")
    wait_for_step(process, place, chance.randrange(0, 66))
    time.sleep(chance.uniform(0, 0.1))
    process.kill()
    process.communicate(timeout=300)

    done = place.penstock("train", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert parameters(place, LAST_STEP) == parameters(trained, LAST_STEP)
    assert losses(place) == losses(trained)
    assert evaluations(place) == evaluations(trained)
