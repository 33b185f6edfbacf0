"""kill -9 at random moments of saving: every checkpoint that can be seen is whole."""

import random
import subprocess
import sys

import torch

from penstock.checkpoint import CheckpointStore

NUM_KILLS = 15
NUM_ROWS = 200_000
# torch is imported once; for each number of seconds it reads, it forks a saver and kills it after that time.
KILL_SAVERS = f"""
import itertools, os, signal, sys, time
from pathlib import Path
import torch
import penstock.checkpoint.tensors
from penstock.checkpoint import CheckpointStore

def save_forever(directory):
    store = CheckpointStore(directory, keep=2)
    newest = store.latest()
    for step in itertools.count(newest.step + 1 if newest else 1):
        table = torch.full(({NUM_ROWS},), float(step))
        store.save(step, {{"table": table}}, {{"progress": {{"step": step}}}})

torch.set_num_threads(1)
for line in sys.stdin:
    saver = os.fork()
    if saver == 0:
        save_forever(Path(sys.argv[1]))
    time.sleep(float(line))
    os.kill(saver, signal.SIGKILL)
    os.waitpid(saver, 0)
    print("killed", flush=True)
"""


def check_every_visible_checkpoint(directory) -> int:
    """Open and load all of them; the newest step."""
    steps = sorted(int(path.name.removeprefix("step-")) for path in directory.glob("step-*"))
    for step in steps:
        checkpoint, table = CheckpointStore(directory).open(step), torch.zeros(NUM_ROWS)
        checkpoint.load_tensors({"table": table})
        assert checkpoint.documents == {"progress": {"step": step}}
        assert torch.equal(table, torch.full((NUM_ROWS,), float(step)))
    return steps[-1] if steps else 0


def test_every_visible_checkpoint_is_whole_after_kills(tmp_path):
    chance = random.Random(20)
    command = [sys.executable, "-c", KILL_SAVERS, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as savers:
        newest = 0
        for _ in range(NUM_KILLS):
            print(chance.uniform(0.01, 0.2), file=savers.stdin, flush=True)
            assert savers.stdout.readline() == "killed\n"
            step = check_every_visible_checkpoint(tmp_path)
            assert step >= newest, "a finished checkpoint was lost"
            newest = step
    assert newest > NUM_KILLS
