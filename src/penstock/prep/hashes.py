"""64-bit hashes of Arrow values of every type, vectorised: equal values have equal hashes, wherever they stand.

Numbers go through the finalizer of splitmix64. A text or a list is a polynomial over its bytes or items, modulo 2**64:
the sums of all of them are differences of one running sum, so that there is no loop over rows. Good for counting and
for checking, not against somebody who wants hashes to collide.
"""

from collections.abc import Callable
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
    if not len(values):
        return np.zeros(0, np.uint64)
    hashes = _hashes(values)
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


def _hashes(values: Any) -> Hashes:
    """Where a value is null, anything."""
    types, kind = pa.types, values.type
    if types.is_null(kind):
        return np.zeros(len(values), np.uint64)
    if types.is_boolean(kind):
        return _hashes(values.cast(pa.uint8()))
    if types.is_dictionary(kind):
        if not len(values.dictionary):
            return np.zeros(len(values), np.uint64)
        indices = pc.fill_null(values.indices, 0).to_numpy(zero_copy_only=False)
        hashes: Hashes = value_hashes(values.dictionary)[indices]
        return hashes
    if types.is_struct(kind):
        children = [values.field(index) for index in range(kind.num_fields)]
        return row_hashes(
            pa.RecordBatch.from_arrays(children, [str(index) for index in range(len(children))])
        )
    if types.is_fixed_size_list(kind):
        items = value_hashes(
            values.values.slice(values.offset * kind.list_size, len(values) * kind.list_size)
        )
        offsets = np.arange(len(values) + 1, dtype=np.int64) * kind.list_size
        return _segment_hashes(lambda begin, end: items[begin:end], offsets)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _list_hashes(values)
    if types.is_fixed_size_binary(kind) and not types.is_decimal(kind):
        return _hashes(values.cast(pa.binary()))
    if kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        return _text_hashes(values)
    return _number_hashes(values)


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


def _list_hashes(values: Any) -> Hashes:
    offsets = values.offsets.to_numpy().astype(np.int64)
    first, last = int(offsets[0]), int(offsets[-1])
    if pa.types.is_map(values.type):
        keys, items = values.keys.slice(first, last - first), values.items.slice(first, last - first)
        hashes = row_hashes(pa.RecordBatch.from_arrays([keys, items], ["key", "item"]))
    else:
        hashes = value_hashes(values.values.slice(first, last - first))
    return _segment_hashes(lambda begin, end: hashes[begin:end], offsets - first)


def _text_hashes(values: Any) -> Hashes:
    is_large = pa.types.is_large_string(values.type) or pa.types.is_large_binary(values.type)
    _, offset_buffer, data_buffer = values.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64 if is_large else np.int32)
    offsets = offsets[values.offset : values.offset + len(values) + 1].astype(np.int64)
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
    data = data[offsets[0] : offsets[-1]]
    return _segment_hashes(lambda begin, end: _BYTE_WORDS[data[begin:end]], offsets - offsets[0])


def _segment_hashes(words: Callable[[int, int], Hashes], offsets: NDArray[np.int64]) -> Hashes:
    """A hash of words[offsets[i]:offsets[i + 1]] for each i; the offsets ascend from 0."""
    # For each offset the sum of all words before it, each times the base to the power of its position.
    sums = np.zeros(len(offsets), np.uint64)
    before, num_words = 0, int(offsets[-1])
    for start in range(0, num_words, _WINDOW):
        stop = min(start + _WINDOW, num_words)
        running = np.cumsum(words(start, stop) * _POWERS[: stop - start], dtype=np.uint64)
        factor = pow(_BASE, start, _WORD)
        first, last = np.searchsorted(offsets, [start, stop], side="right")
        inside = running[offsets[first:last] - start - 1]
        sums[first:last] = inside * np.uint64(factor) + np.uint64(before)
        before = (before + int(running[-1]) * factor) % _WORD
    starts = offsets[:-1]
    window_powers = _powers(pow(_INVERSE_BASE, _WINDOW, _WORD), int(offsets[-1]) // _WINDOW + 1)
    polynomials = (sums[1:] - sums[:-1]) * _INVERSES[starts % _WINDOW] * window_powers[starts // _WINDOW]
    return mixed(polynomials + (offsets[1:] - starts).view(np.uint64) * np.uint64(_BASE))


def _powers(base: int, count: int) -> Hashes:
    factors = np.full(count, base, np.uint64)
    factors[0] = 1
    return np.cumprod(factors, dtype=np.uint64)


_POWERS = _powers(_BASE, _WINDOW)
_INVERSES = _powers(_INVERSE_BASE, _WINDOW)
_BYTE_WORDS = mixed(np.arange(256, dtype=np.uint64))
