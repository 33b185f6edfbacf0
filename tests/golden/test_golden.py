"""What Penstock says and computes, compared with the files in expected/.

    PENSTOCK_UPDATE_GOLDEN=1 python -m pytest tests/golden    (without -n)

writes them anew, after a change that was meant; the diff of expected/ then shows it to whoever reads the commit.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from example_runs import RUNS
from tests.golden.merging import MERGES, merged_files
from tests.golden.refusals import every_refusal
from tests.golden.surface import command_output, every_help, public_names

ROOT = Path(__file__).parents[2]
EXPECTED = Path(__file__).parent / "expected"
IS_UPDATING = "PENSTOCK_UPDATE_GOLDEN" in os.environ


def expected_text(name: str, found: str) -> str:
    """The content of a file of expected/, after writing it where that was asked for."""
    path = EXPECTED / name
    if IS_UPDATING:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)
    return path.read_text()


def expected_json(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """The same of a JSON file of cases; those that were not run now are kept as they are."""
    path = EXPECTED / name
    kept = json.loads(path.read_text()) if path.exists() else {}
    return json.loads(expected_text(name, json.dumps({**kept, **found}, indent=1, sort_keys=True) + "\n"))


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


@pytest.mark.slow  # the tests of wrong_input hold the same texts, case by case
def test_what_wrong_input_is_refused_with(tmp_path_factory: pytest.TempPathFactory):
    found = every_refusal(tmp_path_factory)

    assert found == expected_json("refusals.json", found)
    assert len(found) > 110


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
