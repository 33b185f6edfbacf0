"""Comparing a store with batch files and run file from a run file: what is told, and that nothing is written."""

from pathlib import Path

import pytest

import penstock
from penstock.run.merge import VerifyReport, merge_run, verify_run
from penstock.run.run_config import RunConfig
from tests.prep.merge.inputs import all_bytes
from tests.prep.raw import enter_folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """A run whose batch files are there, in a folder of its own."""
    enter_folder(tmp_path, monkeypatch)
    run = penstock.load_run("prep.yaml")
    penstock.prepare(run, merge=False)
    return run


def test_a_store_that_is_as_it_should_be(run: RunConfig):
    merge_run(run)
    before = all_bytes(Path())

    report = verify_run(run)

    verified, memory = report.lines()
    assert verified == (
        "verified  store: all files, counts, heads, types, options and sampled rows are those of the batch files and "
        "the run"
    )
    assert memory.startswith("memory    at most ")
    assert "verifying" in memory
    assert report.error is None
    assert all_bytes(Path()) == before


def test_a_store_that_is_not_there_is_told_and_not_made(run: RunConfig):
    report = verify_run(run)

    assert (
        report.error == "store/manifest.json: there is none: no merge has finished here; run penstock merge"
    )
    assert not Path("store").exists()


def test_what_the_run_file_says_now_is_compared(run: RunConfig):
    merge_run(run)
    other = run.model_copy(update={"preprocessing": run.preprocessing.model_copy(update={"shuffle": True})})

    assert verify_run(other).error == "store: was merged with shuffle false, not true"


def test_several_differences_are_lines_and_the_first_is_the_error():
    report = VerifyReport("store", ["a: differs", "b: differs", "c: differs"], None)

    assert report.lines() == ["differs   a: differs", "differs   b: differs", "differs   c: differs"]
    assert report.error == "a: differs (and 2 more)"


def test_an_unfinished_preparation_is_told_before_a_store_that_is_not_there(run: RunConfig):
    Path("batches/manifest.json").unlink()

    assert verify_run(run).error == (
        "batches: its batch files are not finished; run penstock prep, which goes on with them"
    )
