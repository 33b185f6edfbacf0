"""A merge that was stopped goes on with what is done; what is torn never looks whole."""

import json
import os

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge.batches import BatchReader, find_batches
from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.prep.merge.staging import locked, remove_others
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import read_header, save_batch
from tests.prep.merge.inputs import all_bytes, concatenated, load_split, write_batches
from tests.readers.batch_files.samples import assert_same, game_arrays

SMALL_PARTS = MergeOptions(part_bytes=1)
"""Each batch is a part."""


def damage(path):
    """Flip a bit of a mask so that nothing else tells; gives a function that mends it."""
    place = read_header(path).array("masks_target").offset
    before, content = path.stat(), bytearray(path.read_bytes())

    def write():
        content[place] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    write()
    return write


@pytest.mark.parametrize(
    "options",
    [
        SMALL_PARTS,
        MergeOptions(part_bytes=1, splits=SplitShares(0.5, 0.3, 0.2)),
        MergeOptions(part_bytes=100, shuffle=True, splits=SplitShares(0.5, 0.3, 0.2)),
        MergeOptions(part_bytes=1, workers=2),
    ],
    ids=["plain", "split", "shuffled", "workers"],
)
def test_it_goes_on_behind_the_last_part_that_is_done(tmp_path, options):
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "undisturbed", options=options)
    mend = damage(tmp_path / "in" / "batch_0004.batch")

    with pytest.raises(DataError, match=r"batch_0004.batch: array 'masks_target' is damaged"):
        merge(tmp_path / "in", tmp_path / "out", options=options)
    assert [name for name in all_bytes(tmp_path / "out") if not name.startswith(".merging-")] == []
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
    options = SMALL_PARTS
    if change == "input":
        save_batch(tmp_path / "in" / "batch_0000.batch", game_arrays(5, seed=99))
    else:
        options = MergeOptions(part_bytes=1, heads="npy")

    result = merge(tmp_path / "in", tmp_path / "out", options=options)

    assert result.kept_tasks == 0
    assert not list((tmp_path / "out").glob(".merging-*"))


def test_a_whole_store_is_left_as_it_is(tmp_path):
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out")
    written_at = (tmp_path / "out" / "X_train.npy").stat().st_mtime_ns

    merge(tmp_path / "in", tmp_path / "out")

    assert (tmp_path / "out" / "X_train.npy").stat().st_mtime_ns == written_at


def test_a_new_store_takes_the_place_of_an_old_one(tmp_path):
    batches = write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(splits=SplitShares(), heads="npy"))
    (tmp_path / "out" / "notes.txt").write_text("mine")

    merge(tmp_path / "in", tmp_path / "out")

    assert sorted(all_bytes(tmp_path / "out")) == [
        "X_train.npy",
        "labels_train.npz",
        "manifest.json",
        "masks_train.npz",
        "notes.txt",
    ]
    assert not (tmp_path / "out" / "labels_train").exists()
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


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"{}",
            "is damaged or no penstock store; remove it and the files of the store beside it, and merge ag",
        ),
        (
            b"\0",
            "is damaged or no penstock store; remove it and the files of the store beside it, and merge ag",
        ),
        (
            b'{"kind": "notes", "version": 1, "crc32": 0}',
            "is of kind 'notes', but 'penstock store' is wanted here; give another folder; to merge here, take it away",
        ),
    ],
)
def test_a_manifest_that_is_none_is_not_replaced(tmp_path, content, message):
    write_batches(tmp_path / "in")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_bytes(content)

    with pytest.raises(ConfigError, match=rf"manifest.json: {message}"):
        merge(tmp_path / "in", tmp_path / "out")


def test_files_of_somebody_else_are_not_replaced(tmp_path):
    write_batches(tmp_path / "in")
    (tmp_path / "out").mkdir()
    np.save(tmp_path / "out" / "X_train.npy", [1, 2, 3])

    with pytest.raises(ConfigError) as told:
        merge(tmp_path / "in", tmp_path / "out")

    assert str(told.value) == (
        f"{tmp_path / 'out'}: X_train.npy is there without a manifest.json, and so no merge replaces it; remove or "
        "move it, or choose another output_dir"
    )


def test_a_store_that_lost_its_manifest_is_told_at_once(tmp_path):
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()

    with pytest.raises(ConfigError) as told:
        merge(tmp_path / "in", tmp_path / "out")

    assert str(told.value) == (
        f"{tmp_path / 'out'}: X_train.npy and 2 more are there without a manifest.json, and so no merge replaces them; "
        "remove or move them, or choose another output_dir"
    )
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    assert merge(tmp_path / "in", tmp_path / "out").num_samples == {"train": 28}


@pytest.fixture
def store_beside_a_failed_restart(tmp_path):
    """A whole store, with what a merge left that was to write it anew."""
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out", options=SMALL_PARTS)
    mend = damage(tmp_path / "in" / "batch_0004.batch")
    with pytest.raises(DataError):
        merge(tmp_path / "in", tmp_path / "out", options=SMALL_PARTS, restart=True)
    mend()
    assert len(list((tmp_path / "out").glob(".merging-*"))) == 1
    return tmp_path


def test_what_a_failed_restart_left_goes_when_the_store_is_found_whole(store_beside_a_failed_restart):
    folder = store_beside_a_failed_restart

    assert merge(folder / "in", folder / "out", options=SMALL_PARTS).was_whole

    assert not list((folder / "out").glob(".merging-*"))
    assert verify(folder / "out", folder / "in") == []


def test_what_a_merge_at_work_has_written_stays(store_beside_a_failed_restart):
    folder = store_beside_a_failed_restart

    with locked(folder / "out"):
        assert merge(folder / "in", folder / "out", options=SMALL_PARTS).was_whole

    assert len(list((folder / "out").glob(".merging-*"))) == 1


def test_a_kill_before_the_last_folder_goes_costs_the_new_store_nothing(tmp_path):
    """The moment after manifest.json came to its place: what the old store had is still known."""
    write_batches(tmp_path / "in")
    merge(tmp_path / "in", tmp_path / "out")
    whole = all_bytes(tmp_path / "out")
    (tmp_path / "out" / ".merging-0-0").mkdir()
    (tmp_path / "out" / ".merging-0-0" / "replaced.json").write_bytes(whole["manifest.json"])

    remove_others(tmp_path / "out", None)

    assert all_bytes(tmp_path / "out") == whole


def test_two_merges_do_not_write_to_one_folder(tmp_path):
    write_batches(tmp_path / "in")

    with locked(tmp_path / "out"), pytest.raises(ConfigError, match="another merge is writing it"):
        merge(tmp_path / "in", tmp_path / "out")


def test_a_batch_file_that_changes_meanwhile_is_noticed(tmp_path):
    write_batches(tmp_path / "in")
    batches = find_batches(tmp_path / "in")
    path = tmp_path / "in" / "batch_0001.batch"
    before_ns = path.stat().st_mtime_ns
    save_batch(path, game_arrays(7, seed=99))
    # Clocks of file systems tick every few milliseconds: both files may be of the same moment otherwise.
    os.utime(path, ns=(before_ns, before_ns + 1_000_000_000))

    with pytest.raises(DataError, match=r"batch_0001.batch: was changed while it was merged"):
        BatchReader(batches, 1)
