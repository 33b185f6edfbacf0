"""Every program of examples/library runs on data that it makes itself, and prints what it promises."""

import contextlib
import importlib.util
import io
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = Path(__file__).parents[2] / "examples" / "library"


def run(name: str, folder: Path) -> str:
    """What a program prints, in an empty folder."""
    printed = io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(printed):
        runpy.run_path(str(PROGRAMS / name), run_name="__main__")
    assert list(folder.iterdir()) == []
    return printed.getvalue()


def run_alone(name: str, folder: Path) -> str:
    """The same in a process of its own: for what loads much, or starts processes."""
    command = [sys.executable, str(PROGRAMS / name)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(folder.iterdir()) == []
    return done.stdout


def test_there_is_no_program_without_a_test():
    programs = {path.stem for path in PROGRAMS.glob("*.py")}

    assert programs == {"numpy_loop", "own_loop", "tf_data", "tfrecord_files", "torch_loop"}


def test_numpy_loop(tmp_path):
    lines = run_alone("numpy_loop.py", tmp_path).splitlines()

    assert lines[0] == "['x', 'y'] 237 batches"
    assert lines[2].endswith("equal")


@pytest.mark.slow
def test_torch_loop(tmp_path):
    first, last = run_alone("torch_loop.py", tmp_path).splitlines()

    assert first == "30,000 rows of age, item, click"
    assert last.endswith(" % of 30,000 rows are predicted right")
    assert int(last.split()[0]) > 90


def test_own_loop(tmp_path):
    printed = run("own_loop.py", tmp_path)
    page = (PROGRAMS.parents[1] / "docs" / "library.md").read_text()

    *steps, equal, auc = printed.splitlines()
    assert steps[:3] == steps[4:]
    assert equal == "equal to the last bit: True"
    assert float(auc.split()[-1]) > 0.85
    assert f"$ python examples/library/own_loop.py\n{steps[0][:8]}" in page


def test_tfrecord_files(tmp_path):
    printed = run("tfrecord_files.py", tmp_path)

    assert "train-00003-of-00004.tfrecord" in printed
    assert "1000 records with\n  language: string\n  num_words: int64\n  words: list<item: int64>" in printed
    assert "batches of at most 512 words" in printed


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is an extra: penstock[tf]"
)
def test_tf_data(tmp_path):
    *specs, accuracies = run_alone("tf_data.py", tmp_path).splitlines()

    assert specs == ["point: float32 (None, 2)", "inside: int64 (None,)"]
    assert float(accuracies.split()[-1]) > 0.9
