"""`penstock prep` and `penstock merge`, and `penstock check` on a run file that has only preprocessing."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.prep.merge import merging
from tests.cli.desk import Desk
from tests.prep.raw import enter_folder


@pytest.fixture
def games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A folder with two raw files and a run file that has nothing but preprocessing."""
    enter_folder(tmp_path, monkeypatch)
    return Desk(tmp_path)


def test_verify_writes_nothing(games: Desk):
    games.penstock("prep", "prep.yaml")
    others = ("--intermediate-dir", "other", "--set", "preprocessing.batch_size=2")
    games.penstock("prep", "prep.yaml", "--skip-merge", *others)
    Path("store/X_train.npy").unlink()
    before = games.content()

    missing = games.penstock("merge", "prep.yaml", "--verify")
    other = games.penstock("merge", "prep.yaml", "--verify", "--intermediate-dir", "other")
    both = games.penstock("merge", "prep.yaml", "--verify", "--restart")

    assert [done.exit_code for done in (missing, other, both)] == [1, 1, 1]
    assert missing.stderr.splitlines()[-1] == (
        "error: store/X_train.npy: is missing; penstock merge --restart writes the store again"
    )
    assert "differs   store: was made of other batch files than those in other; " in other.stdout
    assert (
        both.stderr == "error: --verify writes nothing; leave out --restart, or merge first and verify then\n"
    )
    assert games.content() == before


def test_what_is_wrong_is_one_line(games: Desk):
    games.penstock("prep", "prep.yaml")
    changed = games.penstock("prep", "prep.yaml", "--set", "preprocessing.batch_size=5")
    assert changed.exit_code == 1
    assert changed.stderr.splitlines()[-1] == (
        "error: batches: was begun with something else: batch_size was 4 and is 5; put it back as it was, start over "
        "with --restart, or choose another intermediate_dir"
    )
    assert (
        games.penstock("prep", "prep.yaml", "--set", "preprocessing.batch_size=5", "--restart").exit_code == 0
    )

    games.write("train.yaml", "model_dir: run\n")
    missing = games.penstock("prep", "train.yaml")
    assert missing.stderr == (
        "error: train.yaml: preprocessing: is required by this command: input_path, extract, output_dir\n"
    )


def test_a_failing_file_is_one_line_and_a_traceback_when_asked_for(games: Desk):
    Path("raw/game_1.txt").write_text("0 1 2 what\n")
    reason = "sample 0: 'rawgame:samples' failed: ValueError: could not convert string to float: 'what'"

    stopped = games.penstock("prep", "prep.yaml")
    assert stopped.exit_code == 1
    assert stopped.stderr.splitlines()[-1] == f"error: raw/game_1.txt: {reason}"
    skipped = games.penstock("prep", "prep.yaml", "--set", "preprocessing.on_error=skip")
    assert skipped.exit_code == 0
    assert f"left out: raw/game_1.txt: {reason}" in skipped.stderr.splitlines()
    assert "Traceback" not in skipped.stderr
    assert skipped.stdout.splitlines()[2:4] == ["left out  1 file", f"          raw/game_1.txt: {reason}"]
    shown = games.penstock(
        "--debug", "prep", "prep.yaml", "--set", "preprocessing.on_error=skip", "--restart"
    )
    assert 'rawgame.py", line ' in shown.stderr


def interrupted(folder: Path, when: Path, parallel: str) -> tuple[int, str]:
    """The exit code and the last line of a preparation that got Ctrl-C as soon as a file was there."""
    command = [sys.executable, "-m", "penstock", "prep", "prep.yaml", "--parallel", parallel]
    running = subprocess.Popen(
        command, env={"PYTHONPATH": str(folder)}, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    while not when.exists() and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=300)
    return running.returncode, errors.splitlines()[-1]


@pytest.mark.parametrize("parallel", ["true", "false"])
def test_ctrl_c_keeps_what_is_done(games: Desk, parallel: str):
    Path("raw/game_1.txt").write_text("here\nwait 600\n")

    assert interrupted(games.folder, Path("raw/game_1.txt.here"), parallel) == (
        130,
        "error: stopped: 0 of 1 tasks are done and kept; run the same again to go on",
    )
    assert not any(Path("batches").glob("*.partial"))


def test_ctrl_c_while_merging_says_that_the_same_goes_on(games: Desk, monkeypatch: pytest.MonkeyPatch):
    games.penstock("prep", "prep.yaml", "--skip-merge")

    with monkeypatch.context() as patched:
        patched.setattr(merging, "_mark", lambda *_: signal.raise_signal(signal.SIGINT))
        stopped = games.penstock("merge", "prep.yaml")

    assert (stopped.exit_code, stopped.stderr.splitlines()[-1]) == (
        130,
        "error: stopped: what is merged is kept; run the same again to go on",
    )
    assert not Path("store/manifest.json").exists()
    assert games.penstock("merge", "prep.yaml").exit_code == 0
    assert games.penstock("merge", "prep.yaml", "--verify").exit_code == 0


def test_what_would_be_prepared_is_told_and_nothing_is_written(games: Desk):
    done = games.penstock("check", "prep.yaml")

    assert done.stdout.splitlines() == [
        "raw files    2 files, 108B",
        "extract      rawgame:samples",
        "arrays       strategic_features float32 x 3, labels_action int16, masks_action int8 x 4",
        "written to   batches, merged to store",
        "check        all good for prep and merge; nothing of training is in this file, and nothing was written",
    ]
    assert not Path("batches").exists()


def test_a_memory_limit_that_prep_would_refuse_is_refused_with_one_that_does(games: Desk):
    refused = games.penstock("check", "prep.yaml", "--memory", "20MiB")

    assert (refused.exit_code, refused.stdout) == (1, "")
    told = re.fullmatch(
        r"error: memory\.limit: is 20MiB, but the program alone takes .*iB; raise it to (\d+MiB)\n",
        refused.stderr,
    )
    assert told is not None, refused.stderr
    assert games.penstock("prep", "prep.yaml", "--memory", "20MiB").stderr.splitlines()[-1][:34] == (
        "error: memory.limit: is 20MiB, but"
    )
    assert games.penstock("check", "prep.yaml", "--memory", told[1]).exit_code == 0
    assert games.penstock("prep", "prep.yaml", "--memory", told[1]).exit_code == 0


def test_what_prep_would_refuse_is_refused(games: Desk):
    done = games.penstock("check", "prep.yaml", "--set", "preprocessing.extract=rawgame:smaples")
    assert (done.exit_code, "'rawgame' has no 'smaples'" in done.stderr) == (1, True)

    done = games.penstock("check", "prep.yaml", "--set", "preprocessing.output_dir=raw")
    assert done.stderr.startswith(
        "error: prep.yaml: preprocessing.output_dir: raw holds the raw file raw/game_0.txt"
    )
    for command in ("check", "prep"):
        done = games.penstock(command, "prep.yaml", "--set", "preprocessing.output_dir=batches/store")
        assert done.stderr == (
            "error: prep.yaml: preprocessing.output_dir: batches/store lies in batches, the intermediate_dir; choose "
            "one outside of it\n"
        )


def test_an_interrupt_that_extract_raises_is_one(games: Desk):
    Path("raw/game_1.txt").write_text("interrupt\n")

    done = games.penstock("prep", "prep.yaml")

    assert (done.exit_code, done.stderr.splitlines()[-1]) == (
        130,
        "error: stopped: what is done is kept; run the same again to go on",
    )
