"""Help and JSON Schema answer at once: nothing that computes is loaded for them."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from tests.cli.desk import Desk

COMMANDS = {
    "train": "Train the run described in RUN, and evaluate it.",
    "eval": "Evaluate a checkpoint of RUN: the latest, the best, or a given one.",
    "predict": "Score files with a checkpoint of RUN, in input order.",
    "check": "Read RUN, open its data, build its model, take one batch; write nothing.",
    "inspect": "Show what is in PATH: schema, rows, sizes, warnings.",
    "prep": "Make arrays of raw files, as the section preprocessing of RUN says; go on where an earlier call stopped.",
    "merge": "Make one store of the batch files in intermediate_dir, as the section preprocessing of RUN says.",
    "sample-data": "Write data with a known answer",
    "schema": "Print the JSON Schema of the run file, for editors.",
    "doctor": "Tell what does not fit together on this machine, and the exact fix.",
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
    assert sorted(set(COMMANDS) - set(listed)) == []
    assert "demo" not in listed
    assert "train-eval" not in listed


@pytest.mark.parametrize(("command", "summary"), COMMANDS.items(), ids=COMMANDS)
def test_every_command_says_what_it_does(desk: Desk, command: str, summary: str):
    done = desk.penstock(command, "--help")

    assert done.exit_code == 0
    assert summary in " ".join(done.stdout.split())


def test_schema_is_json_schema_of_the_run_file(desk: Desk):
    done = desk.penstock("schema")

    schema = json.loads(done.stdout)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert {"train_input_path", "data_config", "model_config", "memory"} <= schema["properties"].keys()


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
