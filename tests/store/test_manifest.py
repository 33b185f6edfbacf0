"""Manifests: written last, read whole, and what has changed since."""

import json
from dataclasses import replace

import pytest

from penstock.config.errors import DataError
from penstock.store.batch_file.files import read_header, save_batch
from penstock.store.manifest import MANIFEST_NAME, InputRecord, Manifest
from tests.store.samples import game_arrays

INPUTS = (InputRecord("raw/a.rep", 100, 7, 1_000, 5), InputRecord("raw/b.rep", 200, 8, None, 4))
SETTINGS = {"batch_size": 5, "extract": "mygame.replays:samples"}


@pytest.fixture
def manifest(tmp_path):
    records = [
        save_batch(tmp_path / f"batch_000{number}.batch", game_arrays(5 - number)) for number in range(2)
    ]
    manifest = Manifest(INPUTS, tuple(records), read_header(tmp_path / records[0].name).schema(), SETTINGS)
    manifest.write(tmp_path)
    return manifest


def test_what_is_written_is_read(tmp_path, manifest):
    assert Manifest.read(tmp_path) == manifest
    assert manifest.num_samples == 9
    manifest.check(tmp_path)


def test_the_text_is_for_people_too(tmp_path, manifest):
    document = json.loads((tmp_path / MANIFEST_NAME).read_text())

    assert document["kind"] == "penstock batches"
    assert document["inputs"][0]["path"] == "raw/a.rep"
    assert document["batches"][1] == {
        "name": "batch_0001.batch",
        "num_samples": 4,
        "num_bytes": (tmp_path / "batch_0001.batch").stat().st_size,
        "checksum": manifest.batches[1].checksum,
    }


@pytest.mark.parametrize(
    ("inputs", "settings", "difference"),
    [
        (INPUTS, SETTINGS, None),
        (tuple(replace(record, modified_ns=5, num_samples=0) for record in INPUTS), SETTINGS, None),
        (INPUTS, SETTINGS | {"batch_size": 6}, "batch_size was 5 and is 6"),
        (INPUTS, SETTINGS | {"layout": "npz"}, 'layout was null and is "npz"'),
        ((INPUTS[0], replace(INPUTS[1], checksum=9)), SETTINGS, "input raw/b.rep has changed"),
        (INPUTS[:1], SETTINGS, "input raw/b.rep is gone"),
        ((*INPUTS, InputRecord("raw/c.rep", 1, 1)), SETTINGS, "input raw/c.rep is new"),
        (INPUTS[::-1], SETTINGS, "the order of inputs has changed"),
    ],
)
def test_what_has_changed_since(manifest, inputs, settings, difference):
    assert manifest.difference(inputs, settings) == difference


def test_a_declared_schema_counts_too(manifest):
    other = manifest.schema.without("masks_target")

    assert manifest.difference(INPUTS, SETTINGS, manifest.schema) is None
    assert manifest.difference(INPUTS, SETTINGS, other) == "array 'masks_target' is not in the schema"


def test_a_missing_a_torn_and_another_batch_file(tmp_path, manifest):
    first, second = (tmp_path / batch.name for batch in manifest.batches)

    save_batch(first, game_arrays(5, seed=1))
    with pytest.raises(
        DataError, match=r"0000\.batch: is not the file that manifest\.json lists: checksum is"
    ):
        manifest.check(tmp_path)
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1])
    missing, torn = manifest.problems(tmp_path)

    assert missing == f"{first}: is missing, but manifest.json lists it"
    assert torn.startswith(f"{second}: has ")


def test_a_manifest_that_cannot_be_used(tmp_path, manifest):
    path = tmp_path / MANIFEST_NAME
    text = path.read_text()

    path.write_text(text.replace('"num_samples": 9', '"num_samples": 8'))
    with pytest.raises(DataError, match=r"manifest\.json: is damaged: its checksum differs"):
        Manifest.read(tmp_path)
    path.write_text(text[:-20])
    with pytest.raises(DataError, match=r"manifest\.json: is damaged or no penstock batches"):
        Manifest.read(tmp_path)
    path.write_text(text.replace("penstock batches", "penstock store"))
    with pytest.raises(
        DataError, match=r"manifest\.json: is of kind 'penstock store', but 'penstock batches' is wanted"
    ):
        Manifest.read(tmp_path)
    path.write_text(text.replace('"version": 1', '"version": 2'))
    with pytest.raises(DataError, match=r"has version 2, but this Penstock reads 1; upgrade it"):
        Manifest.read(tmp_path)
    path.unlink()
    with pytest.raises(DataError, match=r"manifest\.json: there is none: the batch files are not finished"):
        Manifest.read(tmp_path)
