"""A kill at any moment of saving: every checkpoint that can be seen is whole, and none is lost."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from penstock.checkpoint import CheckpointStore

NUM_KILLS = 5
NUM_ROWS = 200_000
# torch is imported once; for each number that it reads, it forks a saver, waits for its first checkpoint, and kills it
# after as many times what that one took: in the middle of a later one, however fast the machine is.
KILL_SAVERS = f"""
import itertools, os, signal, sys, time
from pathlib import Path
import torch
import penstock.checkpoint.storage
from penstock.checkpoint import CheckpointStore

def save_forever(directory, step_increment, writer):
    store = CheckpointStore(directory, keep=2)
    newest = store.latest()
    for step in itertools.count(newest.step + step_increment if newest else 1, step_increment):
        table = torch.full(({NUM_ROWS},), float(step))
        store.save(step, {{"table": table}}, {{"progress": {{"step": step}}}})
        os.write(writer, b".")

for line in sys.stdin:
    directory, step_increment, times = line.split("|")
    reader, writer = os.pipe()
    began = time.monotonic()
    saver = os.fork()
    if saver == 0:
        save_forever(Path(directory), int(step_increment), writer)
    os.close(writer)
    saved = os.read(reader, 1)
    time.sleep(float(times) * (time.monotonic() - began))
    os.kill(saver, signal.SIGKILL)
    os.waitpid(saver, 0)
    os.close(reader)
    print("killed" if saved else "died", flush=True)
"""


def check_every_visible_checkpoint(directory) -> int:
    """Open and load all of them; the newest step."""
    store = CheckpointStore(directory)
    visible = {int(path.name.removeprefix("step-")) for path in directory.glob("step-*")}
    steps = store.steps()
    assert visible <= set(steps)
    for step in steps:
        checkpoint, table = store.open(step), torch.zeros(NUM_ROWS)
        checkpoint.load_tensors({"table": table})
        assert checkpoint.documents == {"progress": {"step": step}}
        assert torch.equal(table, torch.full((NUM_ROWS,), float(step)))
    return steps[-1] if steps else 0


@pytest.fixture(scope="module")
def savers():
    command = [sys.executable, "-c", KILL_SAVERS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


@pytest.mark.parametrize("step_increment", [1, 0], ids=["new steps", "the same step"])
def test_every_visible_checkpoint_is_whole_after_kills(tmp_path, savers, step_increment):
    chance, newest = random.Random(20), 0
    for _ in range(NUM_KILLS):
        print(tmp_path, step_increment, chance.uniform(0, 2), sep="|", file=savers.stdin, flush=True)
        assert savers.stdout.readline() == "killed\n"
        step = check_every_visible_checkpoint(tmp_path)
        assert step > newest if step_increment else step == 1, "a finished checkpoint was lost"
        newest = step


class Killed(BaseException):
    """Nothing in the store catches it, so that what it interrupts is left as a kill leaves it."""


@pytest.fixture
def killed_after_rename(monkeypatch):
    """A function that makes the process die right after its n-th rename."""
    rename, seen = Path.rename, []

    def arm(count: int) -> None:
        def rename_and_die(path, target):
            rename(path, target)
            seen.append(path)
            if len(seen) == count:
                raise Killed

        monkeypatch.setattr(Path, "rename", rename_and_die)

    yield arm
    assert seen, "nothing was renamed"


@pytest.mark.parametrize(("num_renames", "found"), [(1, "old"), (2, "new")])
def test_a_step_saved_twice_is_there_after_a_kill_between_the_renames(
    tmp_path, killed_after_rename, monkeypatch, num_renames, found
):
    store = CheckpointStore(tmp_path)
    store.save(20, {}, {"progress": "old"})

    killed_after_rename(num_renames)
    with pytest.raises(Killed):
        store.save(20, {}, {"progress": "new"})
    monkeypatch.undo()

    assert store.steps() == [20]
    assert store.latest().documents["progress"] == found
    store.save(30, {}, {"progress": "next"})
    assert store.open(20).documents["progress"] == found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-20", "step-30"]


def test_a_removed_checkpoint_does_not_come_back_after_a_kill(tmp_path, killed_after_rename, monkeypatch):
    store = CheckpointStore(tmp_path, keep=1)
    store.save(10, {}, {})

    killed_after_rename(2)
    with pytest.raises(Killed):
        store.save(20, {}, {})
    monkeypatch.undo()

    assert store.steps() == [20]
    store.save(30, {}, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["step-30"]
