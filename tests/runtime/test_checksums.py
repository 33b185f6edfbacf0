"""Checksums of files and arrays, and CRC-32C by the instruction of the processor and by tables."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from penstock.runtime.checksums import array_checksum, checksum_of_rest, file_checksum, joined_checksum
from penstock.runtime.crc32c import (
    HAS_INSTRUCTION,
    crc32c,
    masked_crc32c,
    word_by_instruction,
    word_by_tables,
)
from tests.readers import tfrecord_samples


@pytest.mark.parametrize("num_bytes", [0, 9, 2_500_000])
def test_a_file_is_read_block_by_block(tmp_path, num_bytes):
    content = bytes(range(256)) * (num_bytes // 256) + b"123456789"[: num_bytes % 256]
    (tmp_path / "file").write_bytes(content)

    assert file_checksum(tmp_path / "file") == zlib.crc32(content)


def test_an_array_counts_in_c_order_and_goes_on_from_what_was_before():
    array = np.arange(600_000, dtype=np.int32).reshape(1000, 600)

    for found in (array, np.asfortranarray(array)):
        assert array_checksum(found, zlib.crc32(b"header")) == zlib.crc32(b"header" + array.tobytes())


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_parts_give_the_whole_and_the_whole_gives_a_part(first, second):
    whole = joined_checksum(zlib.crc32(first), zlib.crc32(second), len(second))

    assert whole == zlib.crc32(first + second)
    assert checksum_of_rest(whole, zlib.crc32(first), len(second)) == zlib.crc32(second)


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
