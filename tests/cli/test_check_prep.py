"""`penstock check` on a run file that has only preprocessing."""

import re
from pathlib import Path

import pytest

from tests.cli.desk import Desk
from tests.prep.raw import enter_folder


@pytest.fixture
def games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A folder with two raw files and a run file that has nothing but preprocessing."""
    enter_folder(tmp_path, monkeypatch)
    return Desk(tmp_path)


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
