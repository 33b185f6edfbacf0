"""Text columns -> numbers, by Arrow's own parser.

Arrow splits and casts 8192 texts of 16 numbers in 6 to 7 ms on one core, and 8192 of one number in 0.5 ms. A
compiled kernel with tables for exact rounding took 5 to 11 ms and 0.3 to 0.8 ms, depending on the digits: not
worth its lines. So columns of numbers never load numba.
"""

from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.features.columns import Float64Array, Int32Array, row_of_value
from penstock.features.text import BadToken, Text

ArrowArray = Any
"""pa.Array: its type stubs know fewer methods than the classes have."""


def parse_numbers(text: Text, separator: bytes) -> tuple[Float64Array, Int32Array]:
    """Tokens that are numbers: all values, and how many each text has. An empty token among others is bad."""
    texts = _trimmed(_as_arrow(text))
    sizes: ArrowArray = pc.binary_length(texts)
    present = sizes.to_numpy() > 0
    lengths = present.astype(np.int32)
    tokens = texts if present.all() else texts.filter(pa.array(present))
    if separator:
        lists: ArrowArray = pc.split_pattern(tokens, separator.decode())
        lengths[present] = pc.list_value_length(lists).to_numpy()
        tokens = lists.flatten()
    values = _cast(tokens)
    if values is None:
        raise _bad_token(tokens, lengths)
    return values, lengths


def _as_arrow(text: Text) -> ArrowArray:
    """The texts as an Arrow array over the same memory."""
    offsets, data = (pa.py_buffer(cast(Any, part)) for part in (text.offsets, text.data))
    return pa.LargeStringArray.from_buffers(len(text), offsets, data)


def _cast(tokens: ArrowArray) -> Float64Array | None:
    """The nearest doubles; None if one of the tokens is not a number. Few need trimming: that is tried second."""
    for trim in (None, _trimmed):
        try:
            doubles: ArrowArray = pc.cast(trim(tokens) if trim else tokens, pa.float64())
        except pa.ArrowInvalid:
            continue
        return np.asarray(doubles.to_numpy())
    return None


def _trimmed(texts: ArrowArray) -> ArrowArray:
    return pc.ascii_trim(texts, " \t")


def _bad_token(tokens: ArrowArray, lengths: Int32Array) -> BadToken:
    """The first token that is not a number: found by halving, since Arrow does not say where it stopped."""
    begin, end = 0, len(tokens)
    while end - begin > 1:
        middle = (begin + end) // 2
        begin, end = (begin, middle) if _cast(tokens[begin:middle]) is None else (middle, end)
    token = tokens[begin].as_buffer().to_pybytes().decode("utf-8", errors="replace")
    return BadToken(row_of_value(lengths, begin), token, "is not a number")
