"""Help and JSON Schema answer at once, without loading what computes; wrong words are one line and exit code 2."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from tests.cli.desk import Desk

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


WITHOUT_TORCH = """
import json, sys
from penstock.cli.app import app

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("torch", "torchrec"):
            raise ImportError("no torch here")

sys.meta_path.insert(0, NoTorch())
for words in json.loads(sys.argv[1]):
    app(words, standalone_mode=False)
"""


def test_commands_say_what_the_first_seconds_go_to_before_they_import_torch(desk: Desk):
    scored = ["--input", "clicks.parquet", "--output", "scores.parquet"]
    words = [["train", "run.yaml"], ["eval", "run.yaml"], ["predict", "run.yaml", *scored]]
    words += [["check", "run.yaml"], ["plan", "run.yaml"]]
    command = [sys.executable, "-c", WITHOUT_TORCH, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.stdout == ""
    assert done.stderr.splitlines()[::2] == [
        f"{name}: run.yaml is read; importing torch" for name, *_ in words
    ]
    assert done.stderr.count("no torch here") == len(words)


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


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("train", "missing argument 'RUN' (see penstock train --help)"),
        (
            "train run.yaml --contine_train",
            "no such option: --contine-train (Possible options: --continue-train) (see penstock train --help)",
        ),
        (
            "predict run.yaml --predict_input_path clicks.parquet",
            "missing option '--predict_output_path' / '--output' (see penstock predict --help)",
        ),
        (
            "predict run.yaml --predict_input_path a --predict_output_path b --limit 0",
            "--limit: is 0; give 1 or more (see penstock predict --help)",
        ),
        (
            "sample-data --rows many --out x",
            "--rows: is 'many'; give a whole number (see penstock sample-data --help)",
        ),
    ],
)
def test_one_line(desk: Desk, words: str, line: str):
    done = desk.penstock(*words.split())

    assert done.stderr == f"error: {line}\n"
    assert done.stdout == ""
    assert done.exit_code == 2
