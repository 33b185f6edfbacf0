"""Noticing that a saved position was made with other files or in another order."""

import zlib
from collections.abc import Sequence

from penstock.config.errors import CheckpointError
from penstock.config.sizes import KIB
from penstock.readers.files import DataFile
from penstock.readers.storage import open_input, read_at

Fingerprint = tuple[str, int, int | None, int]
"""A file's name without its folder (data sets may move), its size in bytes, its rows where they are known, and
a checksum of the part of its content that is cheap to read."""

START_ANEW = "start anew (train: another --model_dir; --fine_tune_checkpoint keeps the model)"
"""What remains for whoever cannot go on from a saved position, as the end of an error."""

OTHER_FILES = f"go on with these (train: --new_data), or {START_ANEW}"
"""The same, where the files are others."""

_END_BYTES = 64 * KIB
_FOOTER_LENGTH_BYTES = 4
_FOOTER_TAIL_BYTES = 8
"""At the end of a Parquet file: the length of the footer, and a magic word."""


def fingerprint(file: DataFile, num_rows: int | None, checksum: int) -> Fingerprint:
    """What a position remembers of a file."""
    return file.name, file.size_bytes, num_rows, checksum


def ends_checksum(file: DataFile) -> int:
    """Of the first and the last bytes."""
    with open_input(file.path) as source:
        checksum = zlib.crc32(read_at(source, _END_BYTES, 0))
        return zlib.crc32(read_at(source, _END_BYTES, max(0, file.size_bytes - _END_BYTES)), checksum)


def parquet_checksum(file: DataFile) -> int:
    """Of the footer, which holds the sizes, places and statistics of all columns."""
    with open_input(file.path) as source:
        tail_offset = max(0, file.size_bytes - _FOOTER_TAIL_BYTES)
        tail = read_at(source, _FOOTER_TAIL_BYTES, tail_offset)
        footer_bytes = int.from_bytes(tail[:_FOOTER_LENGTH_BYTES], "little")
        return zlib.crc32(read_at(source, footer_bytes, max(0, tail_offset - footer_bytes)))


def check_same_files(
    saved: Sequence[Sequence[object]], present: Sequence[Fingerprint], files: Sequence[DataFile]
) -> None:
    """Refuse a position that was saved with other files, naming the first that differs."""
    for old, new, file in zip(saved, present, files, strict=False):
        if tuple(old) != new:
            raise CheckpointError(
                f"{file.path}: is not the file that the position was saved with (was {_describe(old)}; "
                f"is {_describe(new)}); put that file back, {OTHER_FILES}"
            )
    if len(saved) != len(present):
        raise CheckpointError(
            f"the position was saved with {len(saved)} files but there are {len(present)} now; "
            f"put the same files back, {OTHER_FILES}"
        )


def check_same_seed(saved: int | None, present: int | None) -> None:
    """Refuse a position in another order of blocks."""
    if saved != present:
        raise CheckpointError(
            f"the position was saved with {_describe_order(saved)} but the run has "
            f"{_describe_order(present)}; "
            f"set data_config.shuffle and data_config.seed as they were, or {START_ANEW}"
        )


def _describe_order(seed: int | None) -> str:
    return "no shuffle" if seed is None else f"shuffle seed {seed}"


def _describe(mark: Sequence[object]) -> str:
    name, size_bytes, num_rows, *checksums = mark
    rows = "" if num_rows is None else f", {num_rows} rows"
    content = "".join(f", checksum {checksum}" for checksum in checksums)
    return f"{name}, {size_bytes} bytes{rows}{content}"
