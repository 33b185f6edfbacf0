"""A kill at any moment of saving: every batch file that can be seen is whole."""

import subprocess
import sys

import numpy as np
import pytest

from penstock.readers.batch_files import load_batch, save_batch
from penstock.runtime.durable import remove_partial

NUM_KILLS = 12
# Modules are imported once. For each number it reads, it forks one that saves and kills itself before the line of
# Python with that number: moments are counted in lines and not in seconds, and so are the same on every machine.
KILLED_SAVERS = """
import os, signal, sys
import numpy as np
from penstock.readers.batch_files import save_batch

arrays = {"x": np.full((500, 100), 2)}

def save(last_line):
    num_lines = 0

    def count(frame, event, _):
        nonlocal num_lines
        if event == "line":
            num_lines += 1
            if num_lines == last_line:
                os.kill(os.getpid(), signal.SIGKILL)
        return count

    sys.settrace(count)
    save_batch(sys.argv[1], arrays, layout=sys.argv[2])
    sys.settrace(None)
    return num_lines

save(None)  # imports what it needs
print(save(None), flush=True)
for line in sys.stdin:
    saver = os.fork()
    if saver == 0:
        save(int(line))
        os.kill(os.getpid(), signal.SIGKILL)
    print(os.WTERMSIG(os.waitpid(saver, 0)[1]) == signal.SIGKILL, flush=True)
"""


@pytest.mark.parametrize("layout", ["native", "npz"])
def test_what_is_seen_after_a_kill_is_whole(tmp_path, layout):
    path = tmp_path / "batch_0000"
    num_partial, seen = 0, []
    command = [sys.executable, "-c", KILLED_SAVERS, str(path), layout]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as savers:
        num_lines = int(savers.stdout.readline())
        for line in np.linspace(1, num_lines, NUM_KILLS).astype(int):
            save_batch(path, {"x": np.full((500, 100), 1)}, layout=layout)
            savers.stdin.write(f"{line}\n")
            savers.stdin.flush()
            assert savers.stdout.readline() == "True\n"
            values = load_batch(path)["x"]
            np.testing.assert_array_equal(values, values[0, 0])
            seen.append(values[0, 0])
            num_partial += remove_partial(tmp_path)
            assert [file.name for file in tmp_path.iterdir()] == ["batch_0000"]
        savers.stdin.close()

    assert seen == sorted(seen), "the new file comes at once, and stays"
    assert (seen[0], seen[-1]) == (1, 2)
    assert num_partial > 0, "no kill came while a file was being written"
