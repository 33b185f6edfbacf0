"""Manifests: written last, read whole, and what has changed since."""

import json

import pytest

from penstock.config.errors import DataError
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.store_schema import (
    MANIFEST_NAME,
    InputRecord,
    Manifest,
    encoded_document,
    read_document,
    write_document,
)
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
    assert json.loads((tmp_path / MANIFEST_NAME).read_text())["inputs"][0]["path"] == "raw/a.rep"


KIND, VERSION = "penstock example", 3
BODY = {"seed": 7, "files": [{"name": "X_train.npy", "num_bytes": 800}]}


def read(path):
    return read_document(path, KIND, VERSION, "there is none; run penstock prep")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            encoded_document("penstock store", 3, BODY),
            "is of kind 'penstock store', but 'penstock example' is wanted here; give another folder",
        ),
        (encoded_document(KIND, 4, BODY), "has version 4, but this Penstock reads 3; upgrade it"),
        (
            encoded_document(KIND, 3, BODY).replace(b"800", b"801"),
            "is damaged: its checksum differs; write it again",
        ),
        (encoded_document(KIND, 3, BODY)[:-9], "is damaged or no penstock example; write it again"),
        (b"[]", "is damaged or no penstock example; write it again"),
        (b"\xff\xfe\x00", "is damaged or no penstock example; write it again"),
    ],
)
def test_a_document_that_cannot_be_used(tmp_path, content, reason):
    (tmp_path / "a.json").write_bytes(content)

    with pytest.raises(DataError) as error:
        read(tmp_path / "a.json")

    assert str(error.value) == f"{tmp_path / 'a.json'}: {reason}"


def test_places_that_cannot_be_read_or_written(tmp_path):
    with pytest.raises(DataError, match=r"a\.json: there is none; run penstock prep$"):
        read(tmp_path / "a.json")
    (tmp_path / "folder.json").mkdir()
    with pytest.raises(DataError, match=r"folder\.json: cannot be read: Is a directory$"):
        read(tmp_path / "folder.json")
    with pytest.raises(DataError, match=r"cannot be written: No such file or directory; nothing is left of"):
        write_document(tmp_path / "none" / "a.json", KIND, VERSION, BODY)
