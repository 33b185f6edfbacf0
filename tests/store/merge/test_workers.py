"""Several processes merge."""

import psutil
import pytest

from penstock.config.errors import DataError, PenstockError
from penstock.store.merge import MergeOptions
from penstock.store.merge.batches import find_batches
from penstock.store.merge.plan import plan_merge
from penstock.store.merge.room import reserve
from penstock.store.merge.tasks import Work
from penstock.store.merge.workers import Crew
from tests.store.merge.inputs import write_batches
from tests.store.merge.test_continuing import damage


@pytest.fixture
def work(tmp_path):
    """Two processes and nine tasks."""
    write_batches(tmp_path / "in", [5] * 9)
    plan = plan_merge(find_batches(tmp_path / "in")[0], MergeOptions(workers=2, part_bytes=1))
    for file in plan.files:
        reserve(tmp_path / "out" / file.name, file.num_bytes)
    return Work(plan, tmp_path / "out", None)


def merge_processes():
    return [
        child
        for child in psutil.Process().children()
        if "penstock.store.merge.workers" in str(child.cmdline())
    ]


def test_all_tasks_are_done_by_as_many_processes(work):
    with Crew(work) as crew:
        done = {task.number: checksums for task, checksums in crew.run(work.phases[0])}
        assert len(merge_processes()) == 2

    assert done == {task.number: work.run(task) for task in work.phases[0]}
    assert merge_processes() == []


def test_one_that_is_killed_is_told(work):
    with Crew(work) as crew:
        running = crew.run(work.phases[0])
        next(running)
        for process in merge_processes():
            process.kill()

        with pytest.raises(PenstockError, match="a process of the merge was killed by SIGKILL"):
            list(running)


def test_an_error_of_a_task_is_raised_here(work, tmp_path):
    damage(tmp_path / "in" / "batch_0004.batch")

    with (
        Crew(work) as crew,
        pytest.raises(DataError, match=r"batch_0004.batch: array 'masks_target' is damaged"),
    ):
        list(crew.run(work.phases[0]))
