"""What Penstock says and computes, compared with the files in expected/ (see expected_files.py)."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from example_runs import RUNS
from tests.golden.expected_files import expected_json, expected_text
from tests.golden.merging import MERGES, merged_files
from tests.golden.surface import command_output, every_help, public_names

ROOT = Path(__file__).parents[2]


def test_the_schema_of_run_files():
    found = command_output("schema")

    assert found == expected_text("schema.json", found)


def test_the_help_of_every_command():
    found = every_help()

    assert found == expected_text("help.txt", found)


def test_public_names_and_their_signatures():
    found = public_names()

    assert found == expected_text("public_names.txt", found)
    assert "penstock." not in found


@pytest.mark.parametrize("name", MERGES)
def test_the_bytes_of_a_merged_store(tmp_path: Path, name: str):
    if MERGES[name]["target"] == "hdf5":
        pytest.importorskip("h5py", reason="h5py is an extra: pip install 'penstock[hdf5]'")
    found = merged_files(tmp_path, name)

    assert found == expected_json("merged_stores.json", {name: found})[name]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the runs computed, in their own process: they declare 2GiB, and one of many tests may hold more."""
    folder = tmp_path_factory.mktemp("examples")
    command = [sys.executable, str(ROOT / "tools" / "example_runs.py"), str(ROOT), str(folder)]
    finished = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return json.loads((folder / "results.json").read_text())["runs"]


@pytest.mark.parametrize("name", RUNS)
def test_the_losses_of_an_example(results: dict[str, Any], name: str):
    """Equal to 1e-5: processors differ in the last bits. tools/compare_checkouts.py compares bits on one machine."""
    found = {key: value for key, value in results[name].items() if key != "tensors"}

    expected = expected_json("example_runs.json", {name: found})[name]

    assert found["rows"] == expected["rows"]
    assert found["losses"] == pytest.approx(expected["losses"], abs=1e-5)
    assert found["evaluation"] == pytest.approx(expected["evaluation"], abs=1e-5)
