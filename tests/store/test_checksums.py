"""Checksums of joined bytes follow from those of the parts."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.store.checksums import checksum_of_rest, file_checksum, joined_checksum


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_parts_give_the_whole_and_the_whole_gives_a_part(first, second):
    whole = joined_checksum(zlib.crc32(first), zlib.crc32(second), len(second))

    assert whole == zlib.crc32(first + second)
    assert checksum_of_rest(whole, zlib.crc32(first), len(second)) == zlib.crc32(second)


def test_long_stretches_take_no_longer():
    zeros = bytes(3_000_001)

    assert joined_checksum(zlib.crc32(b"head"), zlib.crc32(zeros), len(zeros)) == zlib.crc32(b"head" + zeros)


@pytest.mark.parametrize("num_bytes", [0, 9, 2_500_000])
def test_a_file_is_read_block_by_block(tmp_path, num_bytes):
    content = bytes(range(256)) * (num_bytes // 256) + b"123456789"[: num_bytes % 256]
    (tmp_path / "file").write_bytes(content)

    assert file_checksum(tmp_path / "file") == zlib.crc32(content)


def test_no_stretch_has_a_negative_length():
    with pytest.raises(ValueError, match="a stretch of -8 bytes has no checksum"):
        joined_checksum(1, 2, -8)
