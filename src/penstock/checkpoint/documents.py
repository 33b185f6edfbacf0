"""Small state as JSON: nested dicts and lists of plain values, NumPy arrays and bytes.

An array becomes `{"$array": {"dtype": "<i8", "shape": [2], "base64": "..."}}`, bytes `{"$bytes": "..."}`,
tuples become lists. Decoding gives arrays and bytes back, bit for bit. Nothing is ever pickled.
"""

import base64
import json
import math
from typing import Any

import numpy as np

from penstock.config.errors import CheckpointError


def encode_document(name: str, value: Any) -> bytes:
    """The JSON text of a document; what JSON cannot carry is refused by its path in the document."""
    return json.dumps(_encoded(value, name), indent=1, sort_keys=True).encode()


def decode_document(text: bytes) -> Any:
    """What `encode_document` was given."""
    return json.loads(text, object_hook=_decoded)


def _encoded(value: Any, path: str) -> Any:
    match value:
        case None | bool() | int() | str() | float():
            return value
        case np.ndarray() if not value.dtype.hasobject:
            content = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
            return {"$array": {"dtype": value.dtype.str, "shape": list(value.shape), "base64": content}}
        case np.generic() if not value.dtype.hasobject:
            return _encoded(value.item(), path)
        case bytes() | bytearray():
            return {"$bytes": base64.b64encode(value).decode()}
        case list() | tuple():
            return [_encoded(item, f"{path}[{index}]") for index, item in enumerate(value)]
        case dict():
            for key in value:
                if not isinstance(key, str) or key.startswith("$"):
                    raise CheckpointError(
                        f"{path}: key {key!r} cannot be saved; keys are strings that do not begin with '$'"
                    )
            return {key: _encoded(item, f"{path}.{key}") for key, item in value.items()}
    raise CheckpointError(
        f"{path}: a {type(value).__name__} cannot be saved in a document; give numbers, strings, lists, "
        "dicts, NumPy arrays or bytes (tensors are saved beside the documents)"
    )


def _decoded(item: dict[str, Any]) -> Any:
    if "$bytes" in item:
        return base64.b64decode(item["$bytes"])
    if "$array" not in item:
        return item
    array = item["$array"]
    dtype, shape = np.dtype(array["dtype"]), array["shape"]
    values = np.frombuffer(base64.b64decode(array["base64"]), dtype=dtype, count=math.prod(shape))
    return values.reshape(shape).copy()
