"""The loop over characters for CSV text with quotes inside unquoted cells.

Importing this module imports numba (about 110 MB), so only text that needs it does.
"""

import numpy as np
from numpy.typing import NDArray

from penstock.runtime.kernels import kernel

_QUOTE = ord('"')


@kernel
def clear_quoted(characters: NDArray[np.uint8], delimiter: int, is_end: NDArray[np.bool_]) -> None:
    """Take back the line ends that are inside quotes."""
    num_characters = len(characters)
    in_quotes, at_cell_start, at = False, True, 0
    while at < num_characters:
        character = characters[at]
        if in_quotes:
            is_end[at] = False
            if character == _QUOTE:
                if at + 1 < num_characters and characters[at + 1] == _QUOTE:
                    at += 1
                else:
                    in_quotes = False
        elif at_cell_start and character == _QUOTE:
            in_quotes, at_cell_start = True, False
        else:
            at_cell_start = is_end[at] or character == delimiter
        at += 1
