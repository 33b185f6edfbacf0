"""A kill at any moment of saving: every batch file that can be seen is whole."""

import random
import subprocess
import sys

import numpy as np

from penstock.runtime.durable import remove_partial
from penstock.store.batch_file import load_batch

NUM_KILLS = 20
# Modules are imported once; for each number of seconds it reads, it forks a saver and kills it after that time.
KILL_SAVERS = """
import os, signal, sys, time
import numpy as np
from penstock.store.batch_file import save_batch

def save_forever(path):
    number = 0
    while True:
        number += 1
        layout = "native" if number % 2 else "npz"
        save_batch(path, {"x": np.full((500, 1000), number)}, layout=layout)

for line in sys.stdin:
    saver = os.fork()
    if saver == 0:
        save_forever(sys.argv[1])
    time.sleep(float(line))
    os.kill(saver, signal.SIGKILL)
    os.waitpid(saver, 0)
    print("killed", flush=True)
"""


def test_what_is_seen_after_a_kill_is_whole(tmp_path):
    path = tmp_path / "batch_0000"
    moments = random.Random(0)
    num_partial = 0
    command = [sys.executable, "-c", KILL_SAVERS, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as savers:
        for _ in range(NUM_KILLS):
            savers.stdin.write(f"{moments.uniform(0.005, 0.1)}\n")
            savers.stdin.flush()
            assert savers.stdout.readline() == "killed\n"
            if path.exists():
                values = load_batch(path)["x"]
                np.testing.assert_array_equal(values, values[0, 0])
            num_partial += remove_partial(tmp_path)
            assert {file.name for file in tmp_path.iterdir()} <= {"batch_0000"}
        savers.stdin.close()

    assert path.exists()
    assert num_partial > 0, "no kill came while a file was being written"
