"""String columns -> ids, through the compiled kernels, and numbers, by Arrow's own parser.

The kernels module is imported by the first call that needs it, so that columns of integers and numbers never pay for
numba. Arrow splits and casts 8192 texts of 16 numbers in 6 to 7 ms on one core, and 8192 of one number in 0.5 ms. A
compiled kernel with tables for exact rounding took 5 to 11 ms and 0.3 to 0.8 ms: not worth its lines.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.features.feature import Float32Array, Float64Array, Int32Array, Int64Array, row_of_value

if TYPE_CHECKING:
    from types import ModuleType

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

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def token(self, begin: int, end: int) -> str:
        """The characters of an extent, for people to read."""
        return self.data[begin:end].tobytes().decode("utf-8", errors="replace")


def text_of(values: list[str]) -> Text:
    """Texts from Python strings: vocabularies and default values."""
    encoded = [value.encode() for value in values]
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(value) for value in encoded], out=offsets[1:])
    data = np.frombuffer(b"".join(encoded), np.uint8)
    return Text(data, offsets)


class BadToken(Exception):
    """A piece of text that is not what it should be: which text it stands in, itself, and why."""

    def __init__(self, text_index: int, token: str, problem: str) -> None:
        self.text_index = text_index
        self.token = token
        self.problem = problem
        super().__init__(f"text {text_index}: {token!r} {problem}")


class TextIds(NamedTuple):
    """The ids of all texts, how many each text has, and their weights if the tokens carry any."""

    values: Int64Array
    lengths: Int32Array
    weights: Float32Array | None


class TextVocabulary:
    """Known texts with their ids, in a table that the kernels search; every other text has `other_id`."""

    def __init__(self, ids_by_text: dict[str, int], other_id: int) -> None:
        self._ids_by_text = ids_by_text
        self._other_id = other_id

    @cached_property
    def table(self) -> tuple[Any, ...]:
        """Slots, their ids, and the keys, as the kernels take them; a free slot has the id of other texts."""
        keys = text_of(list(self._ids_by_text))
        slots = np.full(1 << (2 * len(keys) + 1).bit_length(), -1, np.int64)
        _kernels().fill_slots(keys.data, keys.offsets, slots)
        ids = np.array([*self._ids_by_text.values(), self._other_id], np.int64)
        return slots, ids[slots], keys.data, keys.offsets


def parse_integers(text: Text, separator: bytes, weighted: bool) -> TextIds:
    """Tokens that are integers."""
    return _ids(text, separator, weighted, _kernels().PARSE_INTEGER)


def hash_tokens(text: Text, separator: bytes, weighted: bool, num_buckets: int) -> TextIds:
    """The xxh64 (seed 0) of every token's bytes, modulo the number of buckets."""
    return _ids(text, separator, weighted, _kernels().HASH, num_buckets=num_buckets)


def look_up_tokens(text: Text, separator: bytes, weighted: bool, vocabulary: TextVocabulary) -> TextIds:
    """The id of every token in the vocabulary."""
    return _ids(text, separator, weighted, _kernels().LOOK_UP, vocabulary=vocabulary.table)


def hash_integers(values: Int64Array, num_buckets: int) -> Int64Array:
    """Integers hashed as their decimal text."""
    ids = np.empty(len(values), np.int64)
    _kernels().hash_integers(_read_only(values), num_buckets, ids)
    return ids


def _ids(
    text: Text,
    separator: bytes,
    weighted: bool,
    rule: int,
    num_buckets: int = 1,
    vocabulary: tuple[Any, ...] | None = None,
) -> TextIds:
    kernels = _kernels()
    separator_bytes = np.frombuffer(separator, np.uint8)
    room = _room(text, separator)
    values = np.empty(room, np.int64)
    lengths = np.empty(len(text), np.int32)
    weights = np.empty(room if weighted else 0, np.float32)
    bad = np.zeros(4, np.int64)
    count = kernels.encode_ids(
        (text.data, text.offsets),
        separator_bytes,
        rule,
        num_buckets,
        vocabulary or _NO_VOCABULARY,
        (values, lengths, weights, bad),
    )
    _raise_if_bad(count, bad, text)
    return TextIds(values[:count], lengths, weights[:count] if weighted else None)


def _room(text: Text, separator: bytes) -> int:
    """No fewer than the tokens of all texts together."""
    used = text.data[text.offsets[0] : text.offsets[-1]]
    return len(text) + (int(np.count_nonzero(used == separator[0])) if separator else 0)


def _raise_if_bad(count: int, bad: Int64Array, text: Text) -> None:
    if count < 0:
        index, begin, end, reason = (int(part) for part in bad)
        raise BadToken(index, text.token(begin, end), _PROBLEMS[reason])


def _read_only(values: NDArray[Any]) -> NDArray[Any]:
    """A view that numba compiles for once: views of Arrow memory may be writable or not."""
    view = values.view()
    view.flags.writeable = False
    return view


def _kernels() -> "ModuleType":
    from penstock.features import kernels

    return kernels


_EMPTY_TEXT = np.frombuffer(b"", np.uint8)

_NO_VOCABULARY = (np.full(1, -1, np.int64), np.zeros(1, np.int64), _EMPTY_TEXT, np.zeros(1, np.int64))

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
