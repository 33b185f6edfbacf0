"""Help and JSON Schema answer at once: nothing that computes is loaded for them."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

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
