"""Merging from a run file: what it says, in the terms of the store, and what is told of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock
from penstock.config.errors import ConfigError, DataError
from penstock.config.sizes import MIB, format_size
from penstock.prep.merge.merging import MergeResult
from penstock.prep.merge.options import DeclaredTypes, MergeOptions
from penstock.run.merge import merge_options, merge_run, merged_lines
from penstock.run.run_config import RunConfig
from tests.prep.raw import enter_folder, events


def options_of(limit: str = "1GiB", **keys: Any) -> MergeOptions:
    return merge_options(RunConfig.model_validate({"memory": {"limit": limit}, "preprocessing": keys}))


@pytest.mark.parametrize("target", ["parquet", "ipc"])
def test_compression_is_also_that_of_parquet_and_arrow_files(target: str):
    options = options_of(target=target, compression="zstd", compression_level=3)

    assert (options.compression, options.level) == ("zstd", 3)


@pytest.mark.parametrize("target", ["npy", "hdf5"])
def test_arrays_that_are_mapped_are_not_compressed(target: str):
    options = options_of(target=target, compression="zstd", compression_level=3)

    assert (options.compression, options.level) == ("none", None)


@pytest.mark.parametrize(
    ("limit", "workers", "shuffle_mib"),
    [("16MiB", 1, 4), ("1GiB", 1, 256), ("64GiB", 1, 256), ("64GiB", 4, 1024), ("1GiB", 4, 256)],
)
def test_a_shuffle_holds_a_quarter_of_the_limit_and_no_more_than_is_of_use(
    limit: str, workers: int, shuffle_mib: int
):
    assert options_of(limit, merge_workers=workers).memory_bytes == shuffle_mib * MIB


def test_what_cannot_be_merged_is_told_before_anything_is_prepared():
    with pytest.raises(ConfigError, match=r"^merge_strategy: accumulative is for target npy only"):
        options_of(target="parquet", merge_strategy="accumulative")
    with pytest.raises(ConfigError, match=r"compression level is 40; zstd has 1 to 22"):
        options_of(target="parquet", compression="zstd", compression_level=40)


def test_the_peak_of_each_stage_is_in_the_log_and_the_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    enter_folder(tmp_path, monkeypatch)
    run = penstock.load_run("prep.yaml")
    penstock.prepare(run, merge=False)

    result = merge_run(run)

    peaks = dict(result.memory.stage_peaks)
    assert [*peaks] == ["start", "merging"]
    assert events(tmp_path / "batches")[-1]["stage_peaks"] == peaks
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
            {},
            ["merged    5 batch files to store: train 900, val 100; 2KiB", "time      2.0 s, 500 samples/s"],
        ),
        (
            {"replaced": "other splits"},
            [
                "merged    5 batch files to store: train 900, val 100; 2KiB",
                "replaced  the store that was there, with other splits",
                "time      2.0 s, 500 samples/s",
            ],
        ),
        (
            {"num_batches": 1},
            ["merged    1 batch file to store: train 900, val 100; 2KiB", "time      2.0 s, 500 samples/s"],
        ),
        (
            {"kept_tasks": 3},
            [
                "merged    5 batch files to store: train 900, val 100; 2KiB",
                "kept      3 of 8 parts were merged before",
                "time      2.0 s",
            ],
        ),
        (
            {"num_tasks": 0, "was_whole": True},
            [
                (
                    "whole     store has all samples of 5 batch files already: train 900, val 100; 2KiB; "
                    "nothing was written"
                )
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


@pytest.mark.parametrize(
    ("output_dir", "message"),
    [
        ("raw", "raw holds the raw file raw/game_0.txt; choose a folder apart from raw files"),
        (".", ". holds the raw file raw/game_0.txt; choose a folder apart from raw files"),
        ("raw/store", "raw/store lies in raw, the folder of the raw files; choose one outside of it"),
    ],
)
def test_no_store_among_the_raw_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output_dir: str, message: str
):
    enter_folder(tmp_path, monkeypatch)
    run = penstock.load_run("prep.yaml")
    penstock.prepare(run, merge=False)
    moved = run.preprocessing.model_copy(update={"output_dir": output_dir})

    with pytest.raises(ConfigError) as told:
        merge_run(run.model_copy(update={"preprocessing": moved}))

    assert str(told.value) == f"preprocessing.output_dir: {message}"
    assert sorted(path.name for path in Path("raw").iterdir()) == ["game_0.txt", "game_1.txt"]


def test_a_damaged_manifest_of_batch_files_is_written_again_by_preparing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    enter_folder(tmp_path, monkeypatch)
    run = penstock.load_run("prep.yaml")
    penstock.prepare(run, merge=False)
    manifest = Path("batches/manifest.json")
    whole = manifest.read_bytes()
    manifest.write_bytes(whole[:-9])

    with pytest.raises(DataError) as told:
        merge_run(run)

    assert str(told.value) == (
        "batches/manifest.json: is damaged or no penstock batches; run penstock prep, which writes it again"
    )
    penstock.prepare(run, merge=False)
    assert manifest.read_bytes() == whole


def test_a_group_key_is_of_no_interest_where_files_are_kept_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    enter_folder(tmp_path, monkeypatch)
    run = penstock.load_run("prep.yaml")
    penstock.prepare(run, merge=False)
    shares = {"train": 0.5, "val": 0.5, "test": 0.0, "by": "file"}
    penstock.merge("batches", "store", splits=shares)

    again = penstock.merge("batches", "store", splits={**shares, "group_key": "player"})

    assert again.was_whole
