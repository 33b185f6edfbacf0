"""Schemas, JSON and back, and what differs; manifests."""

import json

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.readers.batch_files import read_header, save_batch
from penstock.readers.store_schema import (
    MANIFEST_NAME,
    ArrayNames,
    ArraySpec,
    InputRecord,
    StoreManifest,
    StoreSchema,
    encoded_document,
    read_document,
    sample_schema,
    write_document,
)
from tests.readers.batch_files.samples import game_arrays

GAME = sample_schema(893, ["action_type", "unit"], {"action_type": 13, "unit": 60})


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({"labels": "y_", "masks": "y_legal_"}, "labels begin with 'y_', and so does 'y_legal_' of masks"),
        ({"labels": "group"}, "labels begin with 'group', and so does 'groups' of groups"),
    ],
)
def test_names_that_cannot_be_told_apart(names, message):
    with pytest.raises(ConfigError, match=f"^arrays of {message}; choose names that can be told apart$"):
        ArrayNames(**names)


@pytest.mark.parametrize(
    ("other", "difference"),
    [
        (GAME, None),
        (StoreSchema(GAME.arrays[::-1]), None),
        (GAME.without("labels_unit"), "array 'labels_unit' is missing"),
        (
            sample_schema(893, ["action_type", "unit"], {"action_type": 13, "unit": 60}, label_dtype="int32"),
            "array 'labels_action_type' is int32 per sample, not int16 per sample",
        ),
        (
            StoreSchema((*GAME.arrays, ArraySpec("groups", np.dtype(np.uint64)))),
            "array 'groups' is not in the schema",
        ),
    ],
)
def test_the_first_difference_in_one_line(other, difference):
    assert GAME.difference(other) == difference


def test_columns_are_carried_along_and_make_no_difference():
    plain = sample_schema(2, ["move"], {})
    known = StoreSchema((ArraySpec("strategic_features", np.dtype(np.float32), 2, ("gold", "wood")),))

    named = plain.with_columns(known)

    assert [spec.columns for spec in named.arrays] == [("gold", "wood"), ()]
    assert plain.difference(named) is None
    assert "columns" not in json.dumps(plain.as_document())
    again = StoreSchema.from_document(json.loads(json.dumps(named.as_document())))
    assert [spec.columns for spec in again.arrays] == [("gold", "wood"), ()]


# Manifests: written last, read whole.

INPUTS = (InputRecord("raw/a.rep", 100, 7, 1_000, 5), InputRecord("raw/b.rep", 200, 8, None, 4))
SETTINGS = {"batch_size": 5, "extract": "mygame.replays:samples"}


@pytest.fixture
def manifest(tmp_path):
    records = [
        save_batch(tmp_path / f"batch_000{number}.batch", game_arrays(5 - number)) for number in range(2)
    ]
    manifest = StoreManifest(
        INPUTS, tuple(records), read_header(tmp_path / records[0].name).schema(), SETTINGS
    )
    manifest.write(tmp_path)
    return manifest


def test_what_is_written_is_read(tmp_path, manifest):
    assert StoreManifest.read(tmp_path) == manifest
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
