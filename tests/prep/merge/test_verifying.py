"""A store is compared with its manifest and with the batch files."""

import json

import numpy as np
import pytest

from penstock.prep.merge.merging import merge
from penstock.prep.merge.options import MergeOptions, SplitShares
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.store_manifest import STORE_KIND, STORE_VERSION, encoded_document
from tests.prep.merge.inputs import all_bytes, write_batches
from tests.readers.batch_files.samples import game_arrays

SIZES = (150, 40, 0, 260)
WAYS = {
    "plain": MergeOptions(),
    "by sample": MergeOptions(splits=SplitShares(), seed=3),
    "by group, shuffled": MergeOptions(splits=SplitShares(by="group"), shuffle=True, heads="npy"),
    "by file": MergeOptions(splits=SplitShares(0.5, 0.5, 0, by="file")),
}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_a_store_is_what_its_batch_files_hold(tmp_path, options):
    write_batches(tmp_path / "in", SIZES, groups=True)

    merge(tmp_path / "in", tmp_path / "out", options=options)

    assert verify(tmp_path / "out", tmp_path / "in") == []


def test_texts_of_different_lengths_are_compared_too(tmp_path):
    arrays = {"strategic_features": np.ones((3, 2)), "labels_move": np.array(["a", "bb", ""])}
    save_batch(tmp_path / "batch_0.batch", arrays)

    merge(tmp_path, tmp_path / "out")

    assert verify(tmp_path / "out", tmp_path) == []


def test_damage_is_found(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out")
    content = bytearray((tmp_path / "out" / "X_train.npy").read_bytes())
    content[500] ^= 1
    (tmp_path / "out" / "X_train.npy").write_bytes(content)
    (tmp_path / "out" / "labels_train.npz").write_bytes(b"")
    (tmp_path / "out" / "masks_train.npz").unlink()

    damaged, empty, missing = verify(tmp_path / "out", tmp_path / "in")

    assert "X_train.npy: is damaged: its checksum is" in damaged
    assert "labels_train.npz: has 0 bytes, not " in empty
    assert missing == (
        f"{tmp_path / 'out' / 'masks_train.npz'}: is missing; penstock merge --restart writes the store anew"
    )


def test_a_damaged_store_is_written_anew_where_that_is_asked_for(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out")
    whole = all_bytes(tmp_path / "out")
    content = bytearray(whole["X_train.npy"])
    content[500] ^= 1
    (tmp_path / "out" / "X_train.npy").write_bytes(content)

    assert merge(tmp_path / "in", tmp_path / "out").was_whole  # sizes tell nothing of it
    again = merge(tmp_path / "in", tmp_path / "out", restart=True)

    assert (again.was_whole, again.replaced, again.kept_tasks) == (False, None, 0)
    assert all_bytes(tmp_path / "out") == whole


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS)
def test_other_values_in_a_batch_file_are_found(tmp_path, options):
    batches = write_batches(tmp_path / "in", SIZES, groups=True)
    merge(tmp_path / "in", tmp_path / "out", options=options)
    batches[3]["labels_target"][-1] += 1
    save_batch(tmp_path / "in" / "batch_0003.batch", batches[3])

    (difference,) = verify(tmp_path / "out", tmp_path / "in")

    assert difference == (
        f"{tmp_path}/in/batch_0003.batch: is another than {tmp_path}/out was made of; penstock merge makes it of these"
    )


@pytest.mark.parametrize(
    ("layout", "compression"), [("native", "none"), ("native", "zstd"), ("npz", "none"), ("npz", "zlib")]
)
def test_a_flipped_bit_in_any_array_of_any_batch_file_is_found(tmp_path, layout, compression):
    write_batches(tmp_path / "in", SIZES, layout=layout, compression=compression)
    merge(tmp_path / "in", tmp_path / "out")

    for path in sorted((tmp_path / "in").iterdir()):
        content = path.read_bytes()
        for array in read_header(path).arrays.values():
            if array.array_bytes:
                damaged = bytearray(content)
                damaged[array.offset + array.num_bytes // 2] ^= 1
                path.write_bytes(damaged)
                (difference,) = verify(tmp_path / "out", tmp_path / "in")
                assert difference.startswith(f"{path}: array '{array.name}'")
        path.write_bytes(content)
    assert verify(tmp_path / "out", tmp_path / "in") == []


def test_every_damaged_batch_file_is_told(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out")
    for number in (0, 3):
        path = tmp_path / "in" / f"batch_{number:04d}.batch"
        with path.open("r+b") as stream:
            stream.seek(read_header(path).array("masks_target").offset)
            stream.write(b"\7")

    first, second = verify(tmp_path / "out", tmp_path / "in")

    assert "batch_0000.batch: array 'masks_target' is damaged" in first
    assert "batch_0003.batch: array 'masks_target' is damaged" in second


def test_options_that_are_not_those_of_the_store_are_told(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(seed=1))

    assert verify(tmp_path / "out", tmp_path / "in", options=MergeOptions(seed=1, workers=2)) == []
    assert verify(tmp_path / "out", tmp_path / "in", options=MergeOptions(seed=2, shuffle=True)) == [
        f"{tmp_path}/out: was merged with shuffle false, not true",
        f"{tmp_path}/out: was merged with seed 1, not 2",
    ]


def test_nothing_is_ever_written(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    write_batches(tmp_path / "others", SIZES[::-1])
    merge(tmp_path / "in", tmp_path / "out")
    (tmp_path / "out" / "X_train.npy").unlink()
    before = all_bytes(tmp_path)

    (missing,) = verify(tmp_path / "out", tmp_path / "in")
    _, first_other = verify(tmp_path / "out", tmp_path / "others")

    assert "X_train.npy: is missing" in missing
    assert first_other == (
        f"{tmp_path}/others/batch_0000.batch: is another than {tmp_path}/out was made of, and 3 more are; "
        "penstock merge makes it of these"
    )
    assert all_bytes(tmp_path) == before


def test_more_samples_and_other_types_are_found(tmp_path):
    write_batches(tmp_path / "in", [4, 4])
    merge(tmp_path / "in", tmp_path / "out")
    for number in range(3):
        arrays = game_arrays(4) | {"labels_target": np.zeros(4, np.int64)}
        save_batch(tmp_path / "in" / f"batch_{number:04d}.batch", arrays)

    other_type, more = verify(tmp_path / "out", tmp_path / "in")

    assert (
        "array 'labels_target' is int16 per sample, not int64 per sample, as the batch files have it"
        in other_type
    )
    assert more == f"{tmp_path / 'out'}: split train has 8 samples, but the batch files give 12"


def test_no_store_is_a_difference(tmp_path):
    write_batches(tmp_path / "in")

    assert verify(tmp_path, tmp_path / "in") == [
        f"{tmp_path / 'manifest.json'}: there is none: no merge has finished here; run penstock merge"
    ]


def test_a_merge_that_has_not_ended_is_no_store(tmp_path):
    write_batches(tmp_path / "in")
    (tmp_path / "out" / ".merging-0123").mkdir(parents=True)

    (difference,) = verify(tmp_path / "out", tmp_path / "in")

    assert difference.startswith(
        f"{tmp_path}/out: is no whole store: a merge was begun here and has not ended"
    )


def test_samples_in_another_order_are_found(tmp_path):
    """The files are whole and the manifest is true to them: only the order is not what the seed says."""
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(shuffle=True, seed=1))
    document = json.loads((tmp_path / "out" / "manifest.json").read_text())
    body = {key: value for key, value in document.items() if key not in ("kind", "version", "crc32")}
    body["options"]["seed"] = 2
    (tmp_path / "out" / "manifest.json").write_bytes(encoded_document(STORE_KIND, STORE_VERSION, body))

    differences = verify(tmp_path / "out", tmp_path / "in")

    assert len(differences) == 5
    assert all(" of train differs at sample" in difference for difference in differences)


def test_what_a_merge_would_refuse_is_told_where_nothing_is_merged(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out", options=WAYS["by sample"])
    (tmp_path / "out" / "manifest.json").unlink()

    (refused,) = verify(tmp_path / "out", tmp_path / "in", options=WAYS["by sample"])
    assert refused == (
        f"{tmp_path / 'out'}: X_train.npy and 8 more are there without a manifest.json, and so no merge replaces them; "
        "remove or move them, or choose another output_dir"
    )
    (tmp_path / "in" / "preparation.json").write_text("{}")
    assert verify(tmp_path / "out", tmp_path / "in") == [
        f"{tmp_path / 'in'}: its batch files are not finished; run penstock prep, which goes on with them"
    ]


def test_a_damaged_manifest_tells_what_a_merge_needs(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out")
    (tmp_path / "out" / "manifest.json").write_text("{")

    (damaged,) = verify(tmp_path / "out", tmp_path / "in")
    assert damaged == (
        f"{tmp_path / 'out' / 'manifest.json'}: is damaged or no penstock store; remove it and the files of the store "
        "beside it, and merge again, or choose another output_dir"
    )
