"""Help and JSON Schema answer at once: nothing that computes is loaded for them."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from tests.cli.desk import Desk

COMMANDS = {
    "train",
    "eval",
    "predict",
    "check",
    "plan",
    "inspect",
    "report",
    "prep",
    "merge",
    "rewrite",
    "sample-data",
}

WITHOUT_HEAVY_IMPORTS = """
import json, sys
from penstock.cli.app import app
for words in json.loads(sys.argv[1]):
    app(words, standalone_mode=False)
heavy = [name for name in ("torch", "torchrec", "numba", "pyarrow") if name in sys.modules]
assert not heavy, heavy
"""


def test_answers_without_what_computes():
    words = [["--help"], ["train", "--help"], ["predict", "-h"], ["schema"]]
    command = [sys.executable, "-c", WITHOUT_HEAVY_IMPORTS, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("--help") >= 3
    assert '"$schema"' in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_the_program_lists_its_commands(desk: Desk, words: list[str]):
    done = desk.penstock(*words)

    assert done.exit_code == 0
    listed = [line.split()[0] for line in done.stdout.partition("Commands:")[2].splitlines() if line.strip()]
    assert {*listed} == COMMANDS | {"schema", "doctor"}


@pytest.mark.parametrize("program", [["-m", "penstock"], ["-c", "from penstock.cli.app import main; main()"]])
def test_the_version_and_the_name_are_the_same_however_one_starts_it(program: list[str]):
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *program, *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert run("--version").returncode == 0
    assert run("--version").stdout == f"penstock {importlib.metadata.version('penstock')}\n"
    assert (
        run("tran").stderr == "error: no such command 'tran'. Did you mean 'train'? (see penstock --help)\n"
    )
