"""Byte sizes."""

import pytest

from penstock.config.section import Section
from penstock.config.sizes import GIB, KIB, ByteSize, exact_size, format_size, parse_size


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("4GiB", 4 * GIB),
        ("10MB", 10_000_000),
        ("1.5 KiB", 1536),
        ("512", 512),
        ("2tib", 2048 * GIB),
    ],
)
def test_sizes_as_people_write_them(text: str, num_bytes: int):
    assert parse_size(text) == num_bytes


@pytest.mark.parametrize("text", ["", "4G", "-1", "1.2.3MiB"])
def test_a_size_that_makes_no_sense(text: str):
    with pytest.raises(
        ValueError, match=f"^is '{text}'; expected a size such as 4GiB, 64MiB, 10MB or a number"
    ):
        parse_size(text)


def test_sizes_for_people_are_rounded_and_sizes_for_files_are_not():
    assert [format_size(n) for n in (0, 1023, 1536, GIB + 1)] == ["0B", "1023B", "1.5KiB", "1GiB"]
    assert [exact_size(n) for n in (0, KIB, 1536, GIB + 1)] == [0, "1KiB", 1536, GIB + 1]


def test_a_field_takes_texts_and_numbers_of_bytes():
    class Options(Section):
        limit: ByteSize | None = None

    assert Options(limit="4GiB").limit == 4 * GIB  # type: ignore[arg-type]
    assert Options(limit=12).limit == 12
    with pytest.raises(ValueError, match="is -1; a size cannot be negative"):
        Options(limit=-1)
