"""Checksums of files and arrays, some bytes at a time."""

import zlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.runtime.checksums import array_checksum, checksum_of_rest, file_checksum, joined_checksum


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
