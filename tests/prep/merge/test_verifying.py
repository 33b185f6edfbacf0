"""A store is compared with its manifest and with the batch files."""

import json

import numpy as np
import pytest

from penstock.prep.merge.merge_options import MergeOptions, SplitShares
from penstock.prep.merge.merging import merge
from penstock.prep.merge.verify import verify
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.store_schema import STORE_KIND, STORE_VERSION, encoded_document
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
def test_a_store_is_what_its_batch_files_hold_and_other_values_are_found(tmp_path, options):
    batches = write_batches(tmp_path / "in", SIZES, groups=True)
    merge(tmp_path / "in", tmp_path / "out", options=options)
    assert verify(tmp_path / "out", tmp_path / "in") == []

    batches[3]["labels_target"][-1] += 1
    save_batch(tmp_path / "in" / "batch_0003.batch", batches[3])
    assert verify(tmp_path / "out", tmp_path / "in") == [
        f"{tmp_path}/in/batch_0003.batch: is another than {tmp_path}/out was made of; penstock merge makes it of these"
    ]


def test_strings_of_different_lengths_are_compared_too(tmp_path):
    arrays = {"strategic_features": np.ones((3, 2)), "labels_move": np.array(["a", "bb", ""])}
    save_batch(tmp_path / "batch_0.batch", arrays)

    merge(tmp_path, tmp_path / "out")

    assert verify(tmp_path / "out", tmp_path) == []


@pytest.fixture
def merged(tmp_path):
    write_batches(tmp_path / "in", SIZES)
    merge(tmp_path / "in", tmp_path / "out", options=MergeOptions(shuffle=True, seed=1))
    return tmp_path


def test_damage_of_the_store_is_found_and_nothing_is_written(merged):
    out = merged / "out"
    content = bytearray((out / "X_train.npy").read_bytes())
    content[500] ^= 1
    (out / "X_train.npy").write_bytes(content)
    (out / "labels_train.npz").write_bytes(b"")
    (out / "masks_train.npz").unlink()
    before = all_bytes(merged)

    damaged, empty, missing = verify(out, merged / "in")

    assert "X_train.npy: is damaged: its checksum is" in damaged
    assert "labels_train.npz: has 0 bytes, not " in empty
    assert missing == (
        f"{out / 'masks_train.npz'}: is missing; penstock merge --restart writes the store again"
    )
    assert all_bytes(merged) == before


@pytest.mark.parametrize(
    ("layout", "compression"), [("native", "none"), ("native", "zstd"), ("npz", "none"), ("npz", "zlib")]
)
def test_a_flipped_bit_in_any_batch_file_is_found(tmp_path, layout, compression):
    write_batches(tmp_path / "in", SIZES[1:], layout=layout, compression=compression)
    merge(tmp_path / "in", tmp_path / "out")
    damaged = []
    for path in sorted((tmp_path / "in").iterdir()):
        array = read_header(path).arrays["strategic_features"]
        if array.array_bytes:
            content = bytearray(path.read_bytes())
            content[array.offset + array.num_bytes // 2] ^= 1
            path.write_bytes(content)
            damaged.append(path)

    first, *others = verify(tmp_path / "out", tmp_path / "in")

    assert first.startswith(f"{damaged[0]}: array 'strategic_features'")
    assert len(others) == (
        0 if compression == "zlib" else 1
    )  # the header of a small member is not read alone


def test_other_batch_files_more_samples_and_other_types_are_found(merged):
    write_batches(merged / "others", SIZES[::-1])
    assert verify(merged / "out", merged / "others") == [
        (
            f"{merged}/others/batch_0000.batch: is another than {merged}/out was made of, and 3 more are; "
            "penstock merge makes it of these"
        )
    ]
    for number in range(5):
        arrays = game_arrays(100) | {"labels_target": np.zeros(100, np.int64)}
        save_batch(merged / "others" / f"batch_{number:04d}.batch", arrays)

    other_type, more = verify(merged / "out", merged / "others")

    assert "array 'labels_target' is int16 per sample, not int64 per sample, as the batch files" in other_type
    assert more == f"{merged}/out: split train has 450 samples, but the batch files give 500"


def test_samples_in_another_order_are_found(merged):
    """The files are whole and the manifest is true to them: only the order is not what the seed says."""
    manifest = merged / "out" / "manifest.json"
    document = json.loads(manifest.read_text())
    body = {key: value for key, value in document.items() if key not in ("kind", "version", "crc32")}
    body["options"]["seed"] = 2
    manifest.write_bytes(encoded_document(STORE_KIND, STORE_VERSION, body))

    differences = verify(merged / "out", merged / "in")

    assert len(differences) == 5
    assert all(" of train differs at sample" in difference for difference in differences)


def test_where_there_is_no_whole_store(merged):
    out, source = merged / "out", merged / "in"
    (out / "manifest.json").write_text("{")
    [damaged] = verify(out, source)
    assert damaged.startswith(
        f"{out / 'manifest.json'}: is damaged or no penstock store; remove it and the files"
    )
    (out / "manifest.json").unlink()
    [without] = verify(out, source)
    assert without.startswith(
        f"{out}: X_train.npy and 2 more are there without a manifest.json, and so no merge"
    )
    assert verify(merged, source) == [
        f"{merged / 'manifest.json'}: there is none: no merge has finished here; run penstock merge"
    ]
    (merged / ".merging-0123").mkdir()
    (difference,) = verify(merged, source)
    assert difference.startswith(f"{merged}: is no whole store: a merge was begun here and has not ended")
    (source / "preparation.json").write_text("{}")
    assert verify(out, source) == [
        f"{source}: its batch files are not finished; run penstock prep, which goes on with them"
    ]
