"""Checksums: by the processor's instruction, by tables, and bit by bit they are the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from penstock.readers.tfrecord.crc32c import crc32c, crc32c_of_word_by_tables, masked_crc32c
from penstock.readers.tfrecord.machine import HAS_CRC32C, address_of, crc32c_of_word
from tests.readers.tfrecord import wire_samples


@njit
def _crc32c(data):
    return crc32c(address_of(data), address_of(data) + len(data))


@njit
def _masked(data):
    return masked_crc32c(address_of(data), address_of(data) + len(data))


@njit
def _of_word_by_instruction(state, word):
    return crc32c_of_word(state, word)


def test_the_check_value_of_the_standard():
    assert _crc32c(np.frombuffer(b"123456789", np.uint8)) == 0xE3069283


@given(st.binary(max_size=70))
def test_any_bytes_as_bit_by_bit(data: bytes):
    array = np.frombuffer(data, np.uint8)

    assert _crc32c(array) == wire_samples.crc32c(data)
    assert int(_masked(array)).to_bytes(4, "little") == wire_samples.masked(data)


@pytest.mark.skipif(not HAS_CRC32C, reason="this processor has no crc32c instruction")
@given(st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1))
def test_tables_and_instruction_agree(state: int, word: int):
    numbers = np.uint64(state), np.uint64(word)

    assert crc32c_of_word_by_tables(*numbers) == _of_word_by_instruction(*numbers)
