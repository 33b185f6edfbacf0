"""The folder of batch files: going on, and beginning anew."""

from pathlib import Path

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.prep.preparing.folder import Plan, PrepFolder
from penstock.readers.files import DataFile
from penstock.readers.store_schema import ArraySpec, StoreSchema

SCHEMA = StoreSchema((ArraySpec("strategic_features", np.dtype(np.float32), 3),))
PLAN = Plan({"batch_size": 4}, (("a", "b"), ("c",)), SCHEMA, {"feature_columns": ["x"]})
FILES = [DataFile(name, 1) for name in "abc"]


@pytest.fixture
def folder(tmp_path: Path) -> PrepFolder:
    """One in which a preparation has begun."""
    begun = PrepFolder(tmp_path)
    begun.save_plan(PLAN)
    return begun


def test_a_plan_is_read_as_it_was_written(folder: PrepFolder):
    assert folder.load_plan() == PLAN


def test_nothing_is_lost_where_no_task_is_done(folder: PrepFolder):
    assert folder.going_on(PLAN, {"batch_size": 4}, FILES) == PLAN
    assert folder.going_on(PLAN, {"batch_size": 5}, FILES) is None
    (folder.path / "tasks" / "task_00000.json").write_text("{}")
    with pytest.raises(
        DataError, match=r"was begun with something else: batch_size was 4 and is 5; put it back"
    ):
        folder.going_on(PLAN, {"batch_size": 5}, FILES)


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_damaged_plan_is_told_with_what_helps(folder: PrepFolder, text: str):
    damaged = folder.path / "preparation.json"
    damaged.write_text(text)

    with pytest.raises(DataError) as error:
        folder.load_plan()

    assert str(error.value) == (
        f"{damaged}: is damaged or no penstock preparation; begin anew with penstock prep --restart, which removes "
        "what is done"
    )
    folder.clear()
    assert folder.load_plan() is None


def test_clearing_removes_what_a_preparation_wrote(folder: PrepFolder):
    for name in (
        "batch_00000_00000.batch",
        "batch_00000_00001.npz",
        "manifest.json",
        "log.jsonl",
        "notes.txt",
    ):
        (folder.path / name).write_text("")

    folder.clear()

    assert [path.name for path in folder.path.iterdir()] == ["notes.txt"]
