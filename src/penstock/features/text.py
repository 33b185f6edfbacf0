"""String columns -> ids, through the compiled kernels, and numbers, by Arrow's own parser.

The kernels module is imported where it is needed, so that columns of integers and numbers never pay for numba.
Arrow splits and casts 8192 texts of 16 numbers in 6 to 7 ms on one core, and 8192 of one number in 0.5 ms. A
compiled kernel with tables for exact rounding took 5 to 11 ms and 0.3 to 0.8 ms: not worth its lines.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.features.feature import Float64Array, Int32Array, Int64Array, SparseColumn, row_of_value
from penstock.readers.columns import ArrowArray

Bytes = NDArray[np.uint8]

_PROBLEMS = (
    "is not a 64-bit integer",
    "has a weight that is not a finite number",
    "has no key",
)


@dataclass(frozen=True, slots=True)
class Text:
    """Texts as Arrow holds them: text i is data[offsets[i]:offsets[i + 1]]; a missing text is empty."""

    data: Bytes
    offsets: Int64Array


class BadToken(Exception):
    """A piece of text that is not what it should be: which text it stands in, itself, and why."""

    def __init__(self, text_index: int, token: str, problem: str) -> None:
        self.text_index = text_index
        self.token = token
        self.problem = problem
        super().__init__(f"text {text_index}: {token!r} {problem}")


class Rule(IntEnum):
    """How a token becomes an id."""

    PARSE_INTEGER = 0
    HASH = 1
    """The xxh64 (seed 0) of its bytes, modulo the number of buckets."""
    LOOK_UP = 2
    """In a vocabulary."""


Vocabulary = tuple[Int64Array, Int64Array, Bytes, Int64Array]
"""A table that the kernels search: slots, their ids, and the keys (data and offsets)."""


def hash_integers(values: Int64Array, num_buckets: int) -> Int64Array:
    from penstock.features import kernels

    ids = np.empty(len(values), np.int64)
    # numba compiles once for read-only arrays: views of Arrow memory may be writable or not.
    view = values.view()
    view.flags.writeable = False
    kernels.hash_integers(view, num_buckets, ids)
    return ids


NO_VOCABULARY: Vocabulary = (
    np.full(1, -1, np.int64),
    np.zeros(1, np.int64),
    np.frombuffer(b"", np.uint8),
    np.zeros(1, np.int64),
)


def encode_ids(
    text: Text,
    separator: bytes,
    weighted: bool,
    rule: Rule,
    num_buckets: int = 1,
    vocabulary: Vocabulary = NO_VOCABULARY,
) -> SparseColumn:
    """The ids of all tokens; a token that cannot be one raises BadToken."""
    from penstock.features import kernels

    # No fewer than the tokens of all texts together.
    used, num_texts = text.data[text.offsets[0] : text.offsets[-1]], len(text.offsets) - 1
    max_tokens = num_texts + (int(np.count_nonzero(used == separator[0])) if separator else 0)
    values = np.empty(max_tokens, np.int64)
    lengths = np.empty(num_texts, np.int32)
    weights = np.empty(max_tokens if weighted else 0, np.float32)
    bad = np.zeros(4, np.int64)
    count = kernels.encode_ids(
        (text.data, text.offsets),
        np.frombuffer(separator, np.uint8),
        int(rule),
        num_buckets,
        vocabulary,
        (values, lengths, weights, bad),
    )
    if count < 0:
        index, begin, end, reason = bad.tolist()
        token = text.data[begin:end].tobytes().decode("utf-8", errors="replace")
        raise BadToken(index, token, _PROBLEMS[reason])
    return SparseColumn(values[:count], lengths, weights[:count] if weighted else None)


def parse_numbers(text: Text, separator: bytes) -> tuple[Float64Array, Int32Array]:
    """Tokens that are numbers: all values, and how many each text has. An empty token among others is bad."""
    offsets, data = (pa.py_buffer(cast(Any, part)) for part in (text.offsets, text.data))
    texts = _trimmed(pa.LargeStringArray.from_buffers(len(text.offsets) - 1, offsets, data))
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
