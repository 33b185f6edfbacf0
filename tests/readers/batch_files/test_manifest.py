"""Manifests: written last, read whole, and what has changed since."""

import json

import pytest

from penstock.config.errors import DataError
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.store_manifest import MANIFEST_NAME, InputRecord, Manifest
from tests.readers.batch_files.samples import game_arrays

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
