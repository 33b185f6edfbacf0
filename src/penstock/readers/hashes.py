"""64-bit hashes of Arrow values of every type, vectorised: equal values have equal hashes, wherever they stand.

Numbers go through the finalizer of splitmix64. A text or a list is a polynomial over its bytes or items, modulo 2**64:
the sums of all of them are differences of one running sum, so that there is no loop over rows. Good for counting and
for checking, not against somebody who wants hashes to collide.
"""

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError

Hashes = NDArray[np.uint64]

_WORD = 2**64
_GOLDEN = 0x9E3779B97F4A7C15
_NULL_HASH = np.uint64(0x6E756C6C6E756C6C)
_BASE = 0xD6E8FEB86659FD93
"""Of the polynomials; odd, so that it has an inverse."""
_INVERSE_BASE = pow(_BASE, -1, _WORD)
_SEGMENTS = frozenset(
    kind.id
    for kind in (
        *(pa.string(), pa.large_string(), pa.binary(), pa.large_binary()),
        *(
            pa.list_(pa.int8()),
            pa.large_list(pa.int8()),
            pa.list_(pa.int8(), 1),
            pa.map_(pa.int8(), pa.int8()),
        ),
    )
)
"""Types whose values are made of bytes or items."""
_WINDOW = 1 << 16
"""So many bytes or items are summed at a time: what is held beside them fits a processor's cache."""


def row_hashes(batch: pa.RecordBatch) -> Hashes:
    """One hash for each row, of all its values in the order of the columns."""
    total = np.zeros(batch.num_rows, np.uint64)
    for index, column in enumerate(batch.columns):
        total += value_hashes(column) * np.uint64((2 * index + 1) * _GOLDEN % _WORD)
    return mixed(total)


def value_hashes(values: Any) -> Hashes:
    """One hash for each value of an Arrow array; all nulls have the same."""
    types, kind = pa.types, values.type
    if types.is_boolean(kind):
        values = values.cast(pa.uint8())
    elif types.is_fixed_size_binary(kind) and not types.is_decimal(kind):
        values = values.cast(pa.binary())
    if values.null_count == len(values):
        return np.full(len(values), _NULL_HASH, np.uint64)
    if types.is_dictionary(kind):
        indices = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False)
        hashes: Hashes = value_hashes(values.dictionary)[indices]
    elif types.is_struct(kind):
        children = [values.field(index) for index in range(kind.num_fields)]
        names = [str(index) for index in range(len(children))]
        hashes = row_hashes(pa.RecordBatch.from_arrays(children, names))
    elif values.type.id in _SEGMENTS:
        hashes = _segment_hashes(values)
    else:
        hashes = _number_hashes(values)
    if values.null_count:
        hashes[values.is_null().to_numpy(zero_copy_only=False)] = _NULL_HASH
    return hashes


def mixed(words: Hashes) -> Hashes:
    """Words in which every bit depends on every bit; one to one, and in place."""
    words += np.uint64(_GOLDEN)
    scratch = words >> np.uint64(30)
    words ^= scratch
    words *= np.uint64(0xBF58476D1CE4E5B9)
    np.right_shift(words, np.uint64(27), out=scratch)
    words ^= scratch
    words *= np.uint64(0x94D049BB133111EB)
    np.right_shift(words, np.uint64(31), out=scratch)
    words ^= scratch
    return words


def _number_hashes(values: Any) -> Hashes:
    try:
        width_bits = int(values.type.bit_width)
    except ValueError as error:
        raise DataError(f"values of type {values.type} cannot be compared; leave the column out") from error
    _, buffer = values.buffers()
    rows = slice(values.offset, values.offset + len(values))
    if width_bits > 64:
        words = np.frombuffer(buffer, np.uint64).reshape(-1, width_bits // 64)[rows]
        hashes = mixed(words[:, 0].copy())
        for column in range(1, words.shape[1]):
            hashes = mixed(hashes ^ words[:, column])
        return hashes
    bits = np.frombuffer(buffer, f"u{width_bits // 8}")[rows]
    if pa.types.is_floating(values.type):
        # Adding zero makes -0.0, which equals 0.0, the same bits.
        bits = (bits.view(f"f{width_bits // 8}") + 0).view(bits.dtype)
    return mixed(bits.astype(np.uint64))


def _segment_hashes(values: Any) -> Hashes:
    """Hashes of texts and lists: each is a segment, between two offsets, of the bytes or the items of all of them."""
    types, kind = pa.types, values.type
    if types.is_fixed_size_list(kind):
        offsets = np.arange(values.offset, values.offset + len(values) + 1, dtype=np.int64) * kind.list_size
    elif types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        offsets = values.offsets.to_numpy().astype(np.int64)
    else:
        is_large = types.is_large_string(kind) or types.is_large_binary(kind)
        offsets = np.frombuffer(values.buffers()[1], np.int64 if is_large else np.int32)
        offsets = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    first, num_words = int(offsets[0]), int(offsets[-1] - offsets[0])
    if types.is_map(kind):
        parts = [values.keys.slice(first, num_words), values.items.slice(first, num_words)]
        words: NDArray[Any] = row_hashes(pa.RecordBatch.from_arrays(parts, ["key", "item"]))
    elif types.is_nested(kind):
        words = value_hashes(values.values.slice(first, num_words))
    else:
        data = values.buffers()[2]
        words = np.frombuffer(b"" if data is None else data, np.uint8)[first : first + num_words]
    offsets -= first

    # For each offset the sum of all words before it, each times the base to the power of its position.
    powers, inverses, byte_words = _tables()
    sums = np.zeros(len(offsets), np.uint64)
    before = 0
    for start in range(0, num_words, _WINDOW):
        stop = min(start + _WINDOW, num_words)
        window = words[start:stop] if types.is_nested(kind) else byte_words[words[start:stop]]
        running = np.cumsum(window * powers[: stop - start], dtype=np.uint64)
        factor = pow(_BASE, start, _WORD)
        begin, end = np.searchsorted(offsets, [start, stop], side="right")
        inside = running[offsets[begin:end] - start - 1]
        sums[begin:end] = inside * np.uint64(factor) + np.uint64(before)
        before = (before + int(running[-1]) * factor) % _WORD
    starts = offsets[:-1]
    window_powers = np.full(num_words // _WINDOW + 1, pow(_INVERSE_BASE, _WINDOW, _WORD), np.uint64)
    window_powers[0] = 1
    np.cumprod(window_powers, out=window_powers)
    polynomials = (sums[1:] - sums[:-1]) * inverses[starts % _WINDOW] * window_powers[starts // _WINDOW]
    return mixed(polynomials + (offsets[1:] - starts).view(np.uint64) * np.uint64(_BASE))


@cache
def _tables() -> tuple[Hashes, Hashes, Hashes]:
    """For the positions of a window the powers of the base and of its inverse, and a word for each byte."""
    bases = np.repeat(np.array([[_BASE], [_INVERSE_BASE]], np.uint64), _WINDOW, axis=1)
    bases[:, 0] = 1
    powers, inverses = np.cumprod(bases, axis=1, dtype=np.uint64)
    return powers, inverses, mixed(np.arange(256, dtype=np.uint64))
