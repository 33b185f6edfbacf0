import numpy as np
import pytest

from penstock.checkpoint.documents import decode_document, encode_document
from penstock.config.errors import CheckpointError


def test_plain_values_come_back():
    document = {"step": 3, "loss": 0.1, "files": ["a", "b"], "best": None, "done": False, "big": 2**100}

    assert decode_document(encode_document("progress", document)) == document


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=np.int32).reshape(2, 3),
        np.array([np.nan, np.inf, -0.0]),
        np.array(7, dtype=np.uint8),
        np.zeros((0, 4), dtype=np.float32),
        np.array(["a", "bc"]),
        np.arange(10)[::3],
    ],
    ids=["matrix", "not finite", "scalar", "empty", "strings", "strided"],
)
def test_arrays_come_back_bit_for_bit(array):
    back = decode_document(encode_document("metrics", {"auc": {"bins": array}}))["auc"]["bins"]

    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert back.tobytes() == array.tobytes()
    assert back.flags.writeable


def test_bytes_and_numpy_scalars_come_back():
    assert decode_document(encode_document("state", [b"\x00\xff", np.float32(0.5), np.int64(3)])) == [
        b"\x00\xff",
        0.5,
        3,
    ]


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": [object()]}, "state.a[0]: a object cannot be saved in a document"),
        ({"a": np.array([None])}, "state.a: a ndarray cannot be saved in a document"),
        ({"a": {3: 1}}, "state.a: key 3 cannot be saved"),
        ({"$array": 1}, "state: key '$array' cannot be saved"),
    ],
)
def test_what_json_cannot_carry_is_refused_by_its_place(document, message):
    with pytest.raises(CheckpointError) as error:
        encode_document("state", document)

    assert str(error.value).startswith(message)


def test_an_object_array_in_a_forged_document_is_refused():
    with pytest.raises(ValueError, match="OBJECT"):
        decode_document(b'{"$array": {"dtype": "|O", "shape": [1], "base64": "AAAAAAAAAAA="}}')
