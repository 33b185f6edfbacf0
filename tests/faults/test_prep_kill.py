"""kill -9 during a preparation, at any moment: the next one gives what an undisturbed one gives, byte for byte."""

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.prep.raw import MODULE, content

pytestmark = pytest.mark.slow

NUM_KILLS = 20
RUN_FILE = """\
preprocessing:
  input_path: raw
  extract: rawgame:samples
  intermediate_dir: batches
  output_dir: store
  batch_size: 16
  num_workers: 2
"""


def lay_out(folder: Path) -> None:
    """Files that take a while, each of them a task or two."""
    (folder / "raw").mkdir(parents=True)
    (folder / "rawgame.py").write_text(MODULE)
    (folder / "prep.yaml").write_text(RUN_FILE)
    for game in range(24):
        lines = [f"{row % 4} {game} {row} {row + 0.125:.60f}\n" for row in range(500 + 40 * game)]
        lines.insert(game, "wait 0.05\n")
        (folder / "raw" / f"game_{game}.txt").write_text("".join(lines))


COMMAND = [sys.executable, "-m", "penstock", "prep", "prep.yaml", "--plain"]


def start(folder: Path) -> "subprocess.Popen[bytes]":
    """The command in a process group of its own."""
    return subprocess.Popen(
        COMMAND,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )


def tasks_done(folder: Path) -> int:
    """How many tasks have their record; -1 before the first has begun."""
    batches = folder / "batches"
    return len([*batches.glob("tasks/task_*.json")]) if (batches / "preparation.json").exists() else -1


def kill_after(folder: Path, num_tasks: int, seconds: float) -> bool:
    """Start, and kill when so many tasks are done and a moment has passed; whether it was still running."""
    running = start(folder)
    while tasks_done(folder) < num_tasks and running.poll() is None:
        time.sleep(0.002)
    time.sleep(seconds)
    was_running = running.poll() is None
    if was_running:
        os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    return was_running


def stored(folder: Path) -> dict[str, bytes]:
    """The arrays of the store."""
    return {path.name: path.read_bytes() for path in (folder / "store").glob("*.np?")}


@pytest.mark.timeout(1800)
def test_twenty_random_moments(tmp_path: Path):
    lay_out(tmp_path / "whole")
    assert start(tmp_path / "whole").wait() == 0
    expected, arrays = content(tmp_path / "whole" / "batches"), stored(tmp_path / "whole")
    num_tasks = tasks_done(tmp_path / "whole")
    moments = random.Random(5)
    killed = kept = 0

    for number in range(NUM_KILLS):
        folder = tmp_path / f"killed_{number}"
        shutil.copytree(tmp_path / "whole" / "raw", folder / "raw")
        for name in ("rawgame.py", "prep.yaml"):
            shutil.copy2(tmp_path / "whole" / name, folder / name)
        killed += kill_after(folder, moments.randrange(num_tasks), moments.uniform(0, 0.05))
        kept += any((folder / "batches" / "tasks").glob("task_*.json"))
        assert start(folder).wait() == 0
        assert content(folder / "batches") == expected
        assert stored(folder) == arrays
        shutil.rmtree(folder)

    assert killed >= NUM_KILLS // 2, f"only {killed} kills came while it was running"
    assert kept >= NUM_KILLS // 4, f"only {kept} kills left a task that was done"


def test_one_kill_after_the_other(tmp_path: Path):
    lay_out(tmp_path / "whole")
    assert start(tmp_path / "whole").wait() == 0
    expected = content(tmp_path / "whole" / "batches")
    shutil.rmtree(tmp_path / "whole" / "batches")

    killed = [kill_after(tmp_path / "whole", num_tasks, 0.02) for num_tasks in (1, 5, 11)]

    assert any(killed)

    assert start(tmp_path / "whole").wait() == 0
    assert content(tmp_path / "whole" / "batches") == expected


SMALL_FILES = """\
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_a_disk_that_takes_no_more_leaves_nothing_that_looks_whole(tmp_path: Path):
    lay_out(tmp_path)
    (tmp_path / "prep.yaml").write_text(RUN_FILE.replace("batch_size: 16", "batch_size: 2000"))

    done = subprocess.run(
        [sys.executable, "-c", SMALL_FILES, *COMMAND[1:]],
        cwd=tmp_path,
        # Python would cut compiled modules short at the limit and keep them.
        env={**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("error: batches/batch_0000"), done.stderr
    assert last.endswith(".batch: cannot be written: File too large; nothing is left of it")
    assert not [*(tmp_path / "batches").glob("batch_*")]
    assert not (tmp_path / "batches" / "manifest.json").exists()
    assert not (tmp_path / "store").exists()
    assert start(tmp_path).wait() == 0
