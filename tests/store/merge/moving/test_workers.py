"""Tasks of a merge are done at once: by threads, or by several processes."""

import contextlib

import psutil
import pytest

from penstock.config.errors import DataError, PenstockError
from penstock.store.merge.moving.crew import Crew
from penstock.store.merge.moving.tasks import Work
from penstock.store.merge.options import MergeOptions
from penstock.store.merge.plan import plan_merge
from penstock.store.merge.room import reserve
from penstock.store.merge.source.batches import find_batches
from tests.store.merge.inputs import write_batches
from tests.store.merge.test_continuing import damage


def work_for(tmp_path, workers):
    """Nine tasks for so many processes."""
    write_batches(tmp_path / "in", [5] * 9)
    plan = plan_merge(find_batches(tmp_path / "in")[0], MergeOptions(workers=workers, part_bytes=1))
    for file in plan.files:
        reserve(tmp_path / "out" / file.name, file.num_bytes)
    return Work(plan, tmp_path / "out", None)


@pytest.fixture
def work(tmp_path):
    return work_for(tmp_path, workers=2)


def merge_processes():
    found = []
    for child in psutil.Process().children():
        # One that another test has left may end at this very moment.
        with contextlib.suppress(psutil.Error):
            if "penstock.store.merge.moving.workers" in str(child.cmdline()):
                found.append(child)
    return found


def test_all_tasks_are_done_by_as_many_processes(work):
    with Crew(work) as crew:
        done = {task.number: checksums for task, checksums in crew.run(work.phases[0])}
        assert len(merge_processes()) == 2

    assert done == {task.number: work.run(task) for task in work.phases[0]}
    assert merge_processes() == []


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_done_comes_in_the_order_of_the_tasks_up_to_the_first_error(tmp_path, workers):
    work = work_for(tmp_path, workers)
    damage(tmp_path / "in" / "batch_0004.batch")
    done = []

    with Crew(work) as crew, pytest.raises(DataError, match=r"batch_0004.batch: .* is damaged"):
        done.extend(task.number for task, _ in crew.run(work.phases[0]))

    assert done == [0, 1, 2, 3]


def test_one_that_is_killed_is_told(work):
    with Crew(work) as crew:
        running = crew.run(work.phases[0])
        next(running)
        for process in merge_processes():
            process.kill()

        with pytest.raises(PenstockError, match="a process of the merge was killed by SIGKILL"):
            list(running)
