"""A merge that was stopped goes on with what is done; what is torn never looks whole; a store may be there before."""

import json
import re

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.prep.merge.staging import locked, remove_others
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import save_batch
from tests.prep.merge.inputs import all_bytes, concatenated, damage, load_split, write_batches
from tests.readers.batch_files.samples import assert_same, game_arrays

SMALL_PARTS = MergeOptions(part_bytes=1)
"""Each batch is a part."""
DAMAGED = "batch_0004.batch: array 'masks_target' is damaged"


@pytest.mark.parametrize(
    "options",
    [
        MergeOptions(part_bytes=1, splits=SplitShares(0.5, 0.3, 0.2)),
        MergeOptions(part_bytes=100, shuffle=True, splits=SplitShares(0.5, 0.3, 0.2)),
        MergeOptions(part_bytes=1, workers=2),
        MergeOptions(part_bytes=1, target="parquet", splits=SplitShares(0.5, 0.3, 0.2)),
    ],
    ids=["split", "shuffled", "workers", "parquet"],
)
def test_it_goes_on_behind_the_last_part_that_is_done(tmp_path, options):
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "undisturbed", options=options)
    mend = damage(tmp_path / "in" / "batch_0004.batch")

    with pytest.raises(DataError, match=DAMAGED):
        merge(tmp_path / "in", tmp_path / "out", options=options)
    assert [path.name[:9] for path in (tmp_path / "out").iterdir()] == [".merging-"]
    mend()
    result = merge(tmp_path / "in", tmp_path / "out", options=options)

    assert 0 < result.kept_tasks < result.num_tasks
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "undisturbed")


def test_a_marker_that_a_kill_left_torn_is_passed_over(tmp_path):
    batches = write_batches(tmp_path / "in")
    mend = damage(tmp_path / "in" / "batch_0004.batch")
    with pytest.raises(DataError):
        merge(tmp_path / "in", tmp_path / "out", options=SMALL_PARTS)
    markers = sorted((tmp_path / "out").glob(".merging-*/.done/*.json"))
    markers[-1].rename(markers[-1].with_suffix(".partial")).write_bytes(b"[")
    mend()

    result = merge(tmp_path / "in", tmp_path / "out", options=SMALL_PARTS)

    assert (result.kept_tasks, result.num_tasks) == (len(markers) - 1, 5)
    assert_same(load_split(tmp_path / "out"), concatenated(batches))


@pytest.mark.parametrize("change", ["input", "option"])
def test_other_inputs_or_options_begin_anew(tmp_path, change):
    write_batches(tmp_path / "in")
    mend = damage(tmp_path / "in" / "batch_0005.batch")
    with pytest.raises(DataError):
        merge(tmp_path / "in", tmp_path / "out", options=SMALL_PARTS)
    mend()
    if change == "input":
        save_batch(tmp_path / "in" / "batch_0000.batch", game_arrays(5, seed=99))

    options = SMALL_PARTS if change == "input" else MergeOptions(part_bytes=1, heads="npy")
    assert merge(tmp_path / "in", tmp_path / "out", options=options).kept_tasks == 0
    assert not list((tmp_path / "out").glob(".merging-*"))


def test_a_new_store_takes_the_place_of_an_old_one(tmp_path):
    batches = write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(splits=SplitShares(), heads="npy"))
    (tmp_path / "out" / "notes.txt").write_text("mine")

    merge(tmp_path / "in", tmp_path / "out")

    names = ["X_train.npy", "labels_train.npz", "manifest.json", "masks_train.npz", "notes.txt"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    assert_same(load_split(tmp_path / "out"), concatenated(batches))


@pytest.mark.parametrize("options", [MergeOptions(), MergeOptions(seed=5)], ids=["same", "others"])
def test_a_kill_while_files_are_moved_is_mended(tmp_path, options):
    """The moment after the first of the new files came to its place and the old manifest went."""
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "expected", options=options)
    merge(tmp_path / "in", tmp_path / "undisturbed")
    merge(tmp_path / "in", tmp_path / "old", options=MergeOptions(splits=SplitShares()))
    fingerprint = json.loads((tmp_path / "undisturbed" / "manifest.json").read_text())["fingerprint"]
    staging = tmp_path / "old" / f".merging-{fingerprint}-{MergeOptions().part_bytes}-0-2"
    staging.mkdir()
    (tmp_path / "old" / "manifest.json").rename(staging / "replaced.json")
    for name, content in all_bytes(tmp_path / "undisturbed").items():
        (tmp_path / "old" / name if name == "X_train.npy" else staging / name).write_bytes(content)

    merge(tmp_path / "in", tmp_path / "old", options=options)

    assert all_bytes(tmp_path / "old") == all_bytes(tmp_path / "expected")


def test_a_kill_before_the_last_folder_goes_costs_the_new_store_nothing(tmp_path):
    """The moment after manifest.json came to its place: what the old store had is still known."""
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out")
    whole = all_bytes(tmp_path / "out")
    (tmp_path / "out" / ".merging-0-0").mkdir()
    (tmp_path / "out" / ".merging-0-0" / "replaced.json").write_bytes(whole["manifest.json"])

    remove_others(tmp_path / "out", None)

    assert all_bytes(tmp_path / "out") == whole


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "manifest.json",
            b'{"kind": "notes", "version": 1, "crc32": 0}',
            "is of kind 'notes', but 'penstock store' is wanted here; give another folder; to merge here, take it away",
        ),
        (
            "X_train.npy",
            b"",
            "out: X_train.npy is there without a manifest.json, and so no merge replaces it",
        ),
    ],
)
def test_files_of_somebody_else_are_not_replaced(tmp_path, name, content, message):
    write_batches(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_bytes(content)

    with pytest.raises(ConfigError, match=message):
        merge(tmp_path / "in", tmp_path / "out")


def test_what_a_failed_restart_left_goes_when_no_merge_is_at_work(tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    write_batches(source)
    merge(source, target, options=SMALL_PARTS)
    mend = damage(source / "batch_0004.batch")
    with pytest.raises(DataError):
        merge(source, target, options=SMALL_PARTS, restart=True)
    mend()

    with locked(target):
        assert merge(source, target, options=SMALL_PARTS).was_whole
    assert len(list(target.glob(".merging-*"))) == 1
    assert merge(source, target, options=SMALL_PARTS).was_whole
    assert not list(target.glob(".merging-*"))
    assert verify(target, source) == []


def test_two_merges_do_not_write_to_one_folder(tmp_path):
    write_batches(tmp_path / "in")

    with locked(tmp_path / "out"), pytest.raises(ConfigError, match="another merge is writing it"):
        merge(tmp_path / "in", tmp_path / "out")


@pytest.fixture
def merged(tmp_path):
    write_batches(tmp_path / "in")
    first = merge(tmp_path / "in", tmp_path / "out")
    assert (first.was_whole, first.replaced) == (False, None)
    return tmp_path


def test_the_same_store_is_left_as_it_is_unless_a_file_is_gone(merged):
    whole, path = all_bytes(merged / "out"), merged / "out" / "labels_train.npz"
    written_at = path.stat().st_mtime_ns

    again = merge(merged / "in", merged / "out", replace=False)
    assert (again.was_whole, again.replaced, again.num_samples) == (True, None, {"train": 28})
    assert path.stat().st_mtime_ns == written_at

    path.unlink()
    again = merge(merged / "in", merged / "out", replace=False)
    assert (again.was_whole, again.replaced) == (False, None)
    assert all_bytes(merged / "out") == whole


def test_a_damaged_store_is_written_anew_where_that_is_asked_for(merged):
    whole = all_bytes(merged / "out")
    content = bytearray(whole["X_train.npy"])
    content[500] ^= 1
    (merged / "out" / "X_train.npy").write_bytes(content)

    assert merge(merged / "in", merged / "out").was_whole  # sizes show nothing of it
    again = merge(merged / "in", merged / "out", restart=True)

    assert (again.was_whole, again.replaced, again.kept_tasks) == (False, None, 0)
    assert all_bytes(merged / "out") == whole


def test_other_options_are_named(merged):
    options = MergeOptions(target="parquet", level=3, compression="zstd")
    difference = "other target, compression, compression_level"
    before = all_bytes(merged / "out")
    refusal = (
        f"out: holds a store with {difference}; write over it with replace=True, or choose another output_dir"
    )

    with pytest.raises(ConfigError, match=re.escape(refusal)):
        merge(merged / "in", merged / "out", options=options, replace=False)
    assert all_bytes(merged / "out") == before

    assert merge(merged / "in", merged / "out", options=options).replaced == difference


@pytest.mark.parametrize(
    ("more", "difference"), [({}, "other samples"), ({"weights": np.ones(5)}, "other arrays")]
)
def test_other_batch_files_are_named(merged, more, difference):
    (merged / "other").mkdir()
    save_batch(merged / "other" / "batch_0.batch", {**game_arrays(5, 9), **more})

    assert merge(merged / "other", merged / "out").replaced == difference
