"""Compiled loops that bring plain columns to where a batch has them: one pass, and without the interpreter's lock.

Importing this module imports numba (about 110 MB), so only `penstock.features.fast_path` does, when a batch has plain
columns only. Columns are given by the addresses of their buffers; whoever calls keeps the buffers.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.extending import intrinsic

from penstock.runtime.kernels import kernel


def _load(num_bits: int, result: Any) -> Any:
    """A kernel's way to the word at any address; nothing is checked."""

    def declare(_context: Any, _address: Any) -> Any:
        def emit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            pointer = builder.inttoptr(arguments[0], ir.IntType(num_bits).as_pointer())
            return builder.load(pointer, align=1)

        return result(types.intp), emit

    return intrinsic(declare)


load_8, load_32, load_64 = _load(8, types.uint8), _load(32, types.uint32), _load(64, types.uint64)

_TILE_ROWS = 512
_EXPONENT = np.uint32(0x7F800000)
"""All ones in the exponent: infinite, or not a number."""


_NULL_COUNT, _OFFSET, _BUFFERS, _CHILDREN = 8, 16, 40, 48
"""Where these stand in the C data interface's ArrowArray."""


@kernel
def _column(batch: Any, index: Any) -> Any:
    """Address of the first value of a column of a batch, of the bits that tell nulls (0: none), and the first bit."""
    array = _word(_word(batch + _CHILDREN) + 8 * index)
    offset, buffers = _word(array + _OFFSET), _word(array + _BUFFERS)
    valid = _word(buffers) if _word(array + _NULL_COUNT) else 0
    return _word(buffers + 8), valid, offset


@kernel
def _word(address: Any) -> Any:
    return np.int64(load_64(address))


@kernel
def _has_null(valid: Any, first_bit: Any, num_rows: Any) -> Any:
    num_valid = 0
    for bit in range(first_bit, first_bit + num_rows):
        num_valid += (load_8(valid + (bit >> 3)) >> (bit & 7)) & 1
    return num_valid < num_rows


@kernel
def copy_ids(batch: Any, indices: Any, num_table_rows: Any, out_FB: Any) -> Any:
    """Copy int64 columns one after the other; False where an id is not a row of its table, or null."""
    num_columns, num_rows = out_FB.shape
    for column in range(num_columns):
        values, valid, offset = _column(batch, indices[column])
        if valid and _has_null(valid, offset, num_rows):
            return False
        if num_rows and _copy_words(values + 8 * offset, out_FB[column]) >= num_table_rows[column]:
            return False
    return True


@kernel
def _copy_words(address: Any, out: Any) -> Any:
    """One column of ids; gives the largest. A function of its own: inside other loops it is compiled half as well."""
    largest = np.uint64(0)
    for row in range(len(out)):
        word = load_64(address + 8 * row)
        largest = max(largest, word)
        out[row] = word
    return largest


@kernel
def copy_numbers(batch: Any, indices: Any, nulls: Any, out_BD: Any) -> Any:
    """Copy float32 columns side by side to the first of `out`, with its own number in place of each one's nulls.

    Numbers are looked at as the bits that they have. False where one is infinite or not a number, as a null becomes
    that has no number to stand in for it.
    """
    num_rows, num_columns = len(out_BD), len(indices)
    worst = np.uint32(0)
    for start in range(0, num_rows, _TILE_ROWS):
        end = min(start + _TILE_ROWS, num_rows)
        for column in range(num_columns):
            values, valid, offset = _column(batch, indices[column])
            address, out = values + 4 * (offset + start), out_BD[start:end, column]
            if valid:
                worst = max(worst, _copy_nullable(address, valid, offset + start, nulls[column], out))
            else:
                worst = max(worst, _copy_floats(address, out))
    return worst != _EXPONENT


@kernel
def _copy_floats(address: Any, out: Any) -> Any:
    """One column without nulls; gives the largest exponent."""
    worst = np.uint32(0)
    for row in range(len(out)):
        word = load_32(address + 4 * row)
        worst = max(worst, word & _EXPONENT)
        out[row] = word
    return worst


@kernel
def _copy_nullable(address: Any, valid: Any, first_bit: Any, null: Any, out: Any) -> Any:
    """One column with `null` in place of its nulls; gives the largest exponent."""
    worst = np.uint32(0)
    num_whole = len(out) // 32 * 32
    for start in range(0, num_whole, 32):
        bits = _next_32_bits(valid, first_bit + start)
        for row in range(32):
            word = _chosen(
                load_32(address + 4 * (start + row)), (bits >> np.uint64(row)) & np.uint64(1), null
            )
            worst = max(worst, word & _EXPONENT)
            out[start + row] = word
    for row in range(num_whole, len(out)):
        bit = first_bit + row
        word = _chosen(load_32(address + 4 * row), (load_8(valid + (bit >> 3)) >> (bit & 7)) & 1, null)
        worst = max(worst, word & _EXPONENT)
        out[row] = word
    return worst


@kernel
def _chosen(word: Any, is_valid: Any, null: Any) -> Any:
    """The word or what stands for null, without a branch: nulls come at random, and would be guessed wrong."""
    keep = np.uint32(0) - np.uint32(is_valid)
    return (word & keep) | (null & ~keep)


@kernel
def _next_32_bits(bits: Any, first_bit: Any) -> Any:
    """32 bits from any offset on, none beyond them: where they fill four bytes, the last byte is read twice."""
    first, last = first_bit >> 3, (first_bit + 31) >> 3
    word = np.uint64(load_32(bits + first)) | np.uint64(load_8(bits + last)) << np.uint64(8 * (last - first))
    return word >> np.uint64(first_bit & 7)
