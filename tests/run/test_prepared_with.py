"""Batch files are not merged as something else than what they were prepared as."""

import re
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.config.errors import ConfigError
from penstock.config.load import apply_edits
from penstock.run.merge import merge_run
from tests.prep.raw import enter_folder

PREPARED: dict[str, Any] = {
    "splits": {"by": "group", "group_key": "player", "train": 0.5, "val": 0.5, "test": 0},
    "schema": {"label_prefix": "y_"},
}


def run_with(**keys: Any):
    """The run file with other keys."""
    return apply_edits(penstock.load_run("prep.yaml"), [(f"preprocessing.{key}", keys[key]) for key in keys])


@pytest.fixture
def _prepared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter_folder(tmp_path, monkeypatch)
    penstock.prepare(run_with(**PREPARED), merge=False)


def refusal(**keys: Any) -> str:
    with pytest.raises(ConfigError) as refused:
        merge_run(run_with(**{**PREPARED, **keys}))
    assert not Path("store").exists()
    return str(refused.value)


@pytest.mark.usefixtures("_prepared")
def test_what_contradicts_the_batch_files_is_refused():
    advice = "; put it back as it was, or prepare them anew with penstock prep --restart"

    assert refusal(splits={**PREPARED["splits"], "group_key": "match"}) == (
        'batches: its batch files were prepared with splits.group_key "player", not "match"' + advice
    )
    assert refusal(schema={"label_prefix": "labels_"}) == (
        'batches: its batch files were prepared with schema.label_prefix "y_", not "labels_"' + advice
    )
    assert refusal(extract="rawgame:arrays") == (
        'batches: its batch files were prepared with extract "rawgame:samples", not "rawgame:arrays"' + advice
    )


@pytest.mark.usefixtures("_prepared")
def test_what_decides_over_the_store_alone_may_be_another():
    other = run_with(schema=PREPARED["schema"], splits={"by": "file"}, seed=3, batch_size=2, layout="npz")

    assert merge_run(other).merged.num_batches == 3


@pytest.mark.usefixtures("_prepared")
def test_what_is_not_said_is_as_the_batch_files_have_it():
    splits = {"by": "group", "train": 0.5, "val": 0.5, "test": 0}

    assert sum(penstock.merge("batches", "store", splits=splits).num_samples.values()) == 9
    with pytest.raises(ConfigError, match=re.escape('splits.group_key "player", not "match"')):
        penstock.merge("batches", "other", splits={**splits, "group_key": "match"})
