"""Checksums: by the processor's instruction, by tables, and bit by bit they are the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from penstock.runtime.crc32c import (
    HAS_INSTRUCTION,
    crc32c,
    masked_crc32c,
    word_by_instruction,
    word_by_tables,
)
from tests.readers import tfrecord_samples


@njit
def _word_by_instruction(state, word):
    return word_by_instruction(state, word)


@given(st.binary(max_size=70))
def test_any_bytes_as_bit_by_bit(data: bytes):
    array = np.frombuffer(b"?" + data + b"?", np.uint8)

    assert crc32c(array, 1, len(data) + 1) == tfrecord_samples.crc32c(data)
    assert int(masked_crc32c(array, 1, len(data) + 1)).to_bytes(4, "little") == tfrecord_samples.masked(data)


@pytest.mark.skipif(not HAS_INSTRUCTION, reason="this processor has no crc32c instruction")
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_tables_and_instruction_agree(state: int, word: int):
    numbers = np.uint64(state), np.uint64(word)

    assert word_by_tables(*numbers) == _word_by_instruction(*numbers)
