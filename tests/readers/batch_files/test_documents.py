"""JSON documents: what is written is read, and what cannot be read says why."""

import pytest

from penstock.config.errors import DataError
from penstock.readers.store_manifest import encoded_document, read_document, write_document

KIND, VERSION = "penstock example", 3
BODY = {"seed": 7, "files": [{"name": "X_train.npy", "num_bytes": 800}]}


def read(path):
    return read_document(path, KIND, VERSION, "there is none; run penstock prep")


def test_what_is_written_is_read(tmp_path):
    write_document(tmp_path / "a.json", KIND, VERSION, {"seed": 1})
    write_document(tmp_path / "a.json", KIND, VERSION, BODY)

    assert read(tmp_path / "a.json") == BODY
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


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
        (b'{"kind": "penstock example"}', "is damaged or no penstock example; write it again"),
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
    with pytest.raises(
        DataError, match=r"cannot be written: No such file or directory; nothing is left of it$"
    ):
        write_document(tmp_path / "none" / "a.json", KIND, VERSION, BODY)
