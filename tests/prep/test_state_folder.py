"""The folder of batch files: going on, and starting over."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from penstock.config.errors import DataError
from penstock.prep.sections import Preprocessing
from penstock.prep.state_folder import Plan, StateFolder, change_since, decisive_settings
from penstock.readers.sections import ReadingSection
from penstock.readers.store_schema import ArraySpec, StoreSchema

SCHEMA = StoreSchema((ArraySpec("strategic_features", np.dtype(np.float32), 3),))
PLAN = Plan({"batch_size": 4}, (("a", "b"), ("c",)), SCHEMA, {"feature_columns": ["x"]})


@pytest.fixture
def folder(tmp_path: Path) -> StateFolder:
    begun = StateFolder(tmp_path)
    begun.save_plan(PLAN)
    return begun


def test_a_damaged_plan_is_told_with_what_helps(folder: StateFolder):
    assert folder.load_plan() == PLAN
    damaged = folder.path / "preparation.json"
    damaged.write_text("{")

    with pytest.raises(DataError) as error:
        folder.load_plan()

    assert str(error.value) == (
        f"{damaged}: is damaged or no penstock preparation; start over with penstock prep --restart, which removes "
        "what is done"
    )
    folder.clear()
    assert folder.load_plan() is None


def test_clearing_removes_what_a_preparation_wrote(folder: StateFolder):
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


ANEW = "start over with --restart, or choose another intermediate_dir"


def begun_with(settings: dict[str, Any], *paths: str) -> Plan:
    return Plan(settings, (paths,), SCHEMA, {})


@pytest.mark.parametrize(
    ("settings", "paths", "line"),
    [
        ({"batch_size": 4}, ["x", "a", "b", "c"], f"other files: 2 were added, the first of them x; {ANEW}"),
        ({"batch_size": 4}, ["a"], f"other files: b is gone; put back, {ANEW}"),
        (
            {"batch_size": 4},
            ["b", "a"],
            f"other files: they are in another order; put it back as it was, {ANEW}",
        ),
    ],
)
def test_the_first_difference_is_told(settings: dict, paths: list[str], line: str):
    change = change_since(begun_with({"batch_size": 4, "level": None}, "a", "b"), settings, paths)

    assert change == f"was begun with {line}"


def test_of_a_section_only_the_keys_that_differ_are_told():
    old = {"schema": {"fill_value": -1.0, "labels": {}, "masks": {"move": 4, "turn": 2}, "num_features": 3}}
    new = {"schema": {"fill_value": 0.0, "labels": {"move": "int8"}, "masks": {"move": 5, "turn": 2}}}

    change = change_since(begun_with(old, "a"), new, ["a"])

    assert change == (
        'was begun with something else: schema.fill_value was -1.0 and is 0.0, schema.labels was {} and is {"move": '
        '"int8"}, schema.masks.move was 4 and is 5, schema.num_features was 3 and is null; put it back as it was, '
        f"{ANEW}"
    )


def preprocessing(**keys: Any) -> Preprocessing:
    return Preprocessing.model_validate(keys)


def test_what_changes_no_byte_is_not_decisive():
    usual = decisive_settings(preprocessing(), ReadingSection())

    indifferent = {
        "num_workers": 7,
        "parallel": False,
        "executor": "ray",
        "on_error": "skip",
        "verbose": False,
        "output_dir": "elsewhere",
        "shuffle": True,
        "seed": 3,
        "target": "parquet",
        "splits": {},
    }
    assert decisive_settings(preprocessing(**indifferent), ReadingSection()) == usual
    for keys in (
        {"batch_size": 3},
        {"schema": {"feature_groups": {"a": 2}}, "feature_dtypes": {"a": "float16"}},
        {"splits": {"by": "group", "group_key": "match"}},
    ):
        assert decisive_settings(preprocessing(**keys), ReadingSection()) != usual
    assert decisive_settings(preprocessing(), ReadingSection(delimiter=";")) != usual
