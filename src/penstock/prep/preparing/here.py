"""Tasks one after the other, in this process."""

from collections.abc import Sequence

from penstock.prep.preparing.tasks import Task
from penstock.prep.preparing.watching import Watch
from penstock.prep.preparing.work import Work, run_task


def run_here(work: Work, tasks: Sequence[Task], watch: Watch) -> None:
    """Do all tasks."""
    for task in tasks:
        watch.done(run_task(work, task, watch.hear))
