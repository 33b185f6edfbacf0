"""Compiled loops that bring plain columns to where a batch has them: one pass, and without the interpreter's lock.

Importing this module imports numba (about 110 MB), so only `penstock.features.plain` does, when a batch has plain
columns only. Columns are given by the addresses of their buffers; whoever calls keeps the buffers.
"""

from typing import Any

import numpy as np
from numba import njit

from penstock.readers.tfrecord.machine import load_8, load_32, load_64

_compiled = njit(cache=True, nogil=True)
_TILE_ROWS = 512
_EXPONENT = np.uint32(0x7F800000)
"""All ones in the exponent: infinite, or not a number."""


@_compiled
def copy_ids(addresses: Any, num_table_rows: Any, out_FB: Any) -> Any:
    """Copy int64 columns one after the other; False where an id is not a row of its table."""
    num_columns, num_rows = out_FB.shape
    for column in range(num_columns):
        address, largest = addresses[column], np.uint64(0)
        for row in range(num_rows):
            value = load_64(address + 8 * row)
            largest = max(largest, value)
            out_FB[column, row] = value
        if largest >= num_table_rows[column]:
            return False
    return True


@_compiled
def copy_numbers(addresses: Any, valid_addresses: Any, first_bits: Any, nulls: Any, out_BD: Any) -> Any:
    """Copy float32 columns side by side, with a number of its own in place of each column's nulls.

    Numbers are looked at as the bits that they have. False where one is infinite or not a number.
    """
    num_rows, num_columns = out_BD.shape
    worst = np.uint32(0)
    for start in range(0, num_rows, _TILE_ROWS):
        end = min(start + _TILE_ROWS, num_rows)
        for column in range(num_columns):
            address, valid = addresses[column], valid_addresses[column]
            first_bit, null = first_bits[column], nulls[column]
            for row in range(start, end):
                word = load_32(address + 4 * row)
                if valid:
                    bit = first_bit + row
                    is_valid = np.uint32(load_8(valid + (bit >> 3)) >> (bit & 7)) & np.uint32(1)
                    # All ones or all zeros: nulls come at random, and a branch on them would be mispredicted.
                    keep = np.uint32(0) - is_valid
                    word = (word & keep) | (null & ~keep)
                worst = max(worst, word & _EXPONENT)
                out_BD[row, column] = word
    return worst != _EXPONENT
