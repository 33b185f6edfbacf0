"""Merging and verifying from a run file, and `penstock.merge`."""

import inspect
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.config.errors import ConfigError
from penstock.config.load import apply_edits
from penstock.config.sizes import format_size
from penstock.prep.merge.merge_options import DeclaredTypes, MergeOptions
from penstock.prep.merge.merging import MergeResult
from penstock.prep.sections import Preprocessing
from penstock.run.preparation import merge_options, merge_run, merged_lines, verify_run
from penstock.run.run_config import RunConfig
from tests.prep.merge.inputs import write_batches
from tests.prep.raw import enter_folder, events


def options_of(**keys: Any) -> MergeOptions:
    return merge_options(Preprocessing.model_validate(keys), 2**30)


def test_the_peak_of_each_stage_is_in_the_log_and_the_summary(run: RunConfig):

    result = merge_run(run)

    peaks = dict(result.memory.stage_peaks)
    assert [*peaks] == ["start", "merging"]
    assert events(Path("batches"))[-1]["stage_peaks"] == peaks
    stages = ", ".join(f"{name} {format_size(peak)}" for name, peak in peaks.items())
    assert result.lines()[-1] == f"memory    at most {format_size(max(peaks.values()))} ({stages})"


def test_nothing_is_written_to_a_folder_of_batch_files_that_others_made(tmp_path: Path):
    (tmp_path / "old").mkdir()
    np.savez(tmp_path / "old" / "batch_0000.npz", strategic_features=np.ones((2, 3), np.float32))
    section = {"intermediate_dir": str(tmp_path / "old"), "output_dir": str(tmp_path / "store")}

    result = merge_run(RunConfig.model_validate({"preprocessing": section}))

    assert result.merged.num_samples == {"train": 2}
    assert [path.name for path in (tmp_path / "old").iterdir()] == ["batch_0000.npz"]


def result_of(**facts: Any) -> MergeResult:
    usual = {"num_batches": 5, "num_tasks": 8, "kept_tasks": 0, "seconds": 2.0}
    return MergeResult(Path("store"), {"train": 900, "val": 100}, 2048, **{**usual, **facts})


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        (
            {"replaced": "other splits", "num_batches": 1},
            [
                "merged    1 batch file to store: train 900, val 100; 2KiB",
                "replaced  the store that was there, with other splits",
                "time      2.0 s, 500 samples/s",
            ],
        ),
        (
            {"kept_tasks": 3},
            [
                "merged    5 batch files to store: train 900, val 100; 2KiB",
                "kept      3 of 8 parts were merged before",
                "time      2.0 s",
            ],
        ),
    ],
)
def test_what_is_told_of_a_merge(facts: dict[str, Any], lines: list[str]):
    assert merged_lines(result_of(**facts)) == lines


def test_types_that_the_run_file_declares_are_those_of_old_samples():
    types = options_of(dtype="float16", schema={"labels": {"move": "int32"}, "mask_dtype": "uint8"}).types

    assert types == DeclaredTypes("float16", {"move": "int32"}, "uint8")
    assert options_of(use_float32=False).types == DeclaredTypes("float64")
    assert options_of().types is None


def test_no_store_among_the_raw_files(run: RunConfig):
    moved = run.preprocessing.model_copy(update={"output_dir": "raw"})

    with pytest.raises(
        ConfigError, match=r"^preprocessing.output_dir: raw holds the raw file raw/game_0.txt; "
    ):
        merge_run(run.model_copy(update={"preprocessing": moved}))

    assert sorted(path.name for path in Path("raw").iterdir()) == ["game_0.txt", "game_1.txt"]


def test_its_arguments_are_called_like_the_keys_of_run_files():
    arguments = {*inspect.signature(penstock.merge).parameters}
    keys = {field.alias or name for name, field in Preprocessing.model_fields.items()}

    own = {"strategy", "memory_limit", "allow_pickle", "replace", "restart", "progress"}
    assert arguments - own <= keys
    told = inspect.getdoc(penstock.merge)
    assert [name for name in arguments - {"intermediate_dir", "output_dir"} if f"{name}" not in told] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"splits": {"train": 0.8, "val": 0.3}}, "splits: train, val and test add up to 1.2; they must"),
        ({"compression": "zstd"}, "compression: zstd is not for target npy; leave it out"),
        ({"strategy": "all"}, "merge_strategy: is 'all'; known: accumulative, sequential"),
    ],
)
def test_wrong_arguments_are_told_as_in_run_files(tmp_path: Path, arguments: dict[str, Any], message: str):
    write_batches(tmp_path / "in")

    with pytest.raises(penstock.ConfigError, match=re.escape(message)):
        penstock.merge(tmp_path / "in", tmp_path / "out", **arguments)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunConfig:
    """A run whose batch files are there, in a folder of its own."""
    enter_folder(tmp_path, monkeypatch)
    run = penstock.load_run("prep.yaml")
    penstock.prepare(run, merge=False)
    return run


def test_what_the_run_file_says_now_is_compared(run: RunConfig):
    merge_run(run)
    other = run.model_copy(update={"preprocessing": run.preprocessing.model_copy(update={"shuffle": True})})

    assert verify_run(other).error == "store: was merged with shuffle false, not true"


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
    advice = "; put it back as it was, or prepare them again with penstock prep --restart"

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
