"""Powers that turn decimal digits into doubles; the kernels take them as constants."""

import numpy as np
from numpy.typing import NDArray

SMALLEST_POWER, LARGEST_POWER = -342, 308
"""Beyond these powers of ten, 19 digits are zero or infinite as a double."""

_WORD = (1 << 64) - 1


def powers_of_five() -> NDArray[np.uint64]:
    """The leading 128 bits of 5**q, high word and low word, for every q from SMALLEST_POWER on.

    They are truncated, but rounded up from 5**-27 to 5**-1: there a tie must show as just above the half.
    """
    words = np.empty((LARGEST_POWER - SMALLEST_POWER + 1, 2), np.uint64)
    for q in range(SMALLEST_POWER, LARGEST_POWER + 1):
        power = 5 ** abs(q)
        if q >= 0:
            shift = power.bit_length() - 128
            leading = power >> shift if shift > 0 else power << -shift
        else:
            leading = (1 << (power.bit_length() + 127)) // power + (1 if q >= -27 else 0)
        words[q - SMALLEST_POWER] = leading >> 64, leading & _WORD
    return words


def powers_of_ten() -> NDArray[np.float64]:
    """The powers of ten that doubles hold exactly: 10**0 to 10**22."""
    return np.array([float(f"1e{q}") for q in range(23)])
