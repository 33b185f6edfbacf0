r"""The two layouts of batch files: headers with the offsets of arrays, and their bytes.

`.npz` is what NumPy writes. The native layout is written faster and has more compressions:

    0    8  magic: \x93 P N S T O C K
    8    4  version of the layout (little-endian, as all numbers here)
    12   4  bytes of the text that follows
    16   4  CRC-32 of that text
    20      text: JSON, then spaces up to the first array; arrays begin at multiples of 64

`{"file_bytes": 2342720, "arrays": [{"name": ..., "dtype": "<f4", "shape": [500, 893], "offset": 2240,
"num_bytes": 1786000, "compression": "none", "crc32": 3421846044}, ...]}`
"""

import functools
import io
import json
import math
import os
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import KIB
from penstock.readers.store_schema import ArrayNames, ArraySpec, BatchRecord, DamagedFile, DType, StoreSchema
from penstock.runtime.checksums import array_checksum, checksum_of_rest, chunks

COMPRESSIONS = ("none", "zlib", "zstd", "lz4")
NATIVE_MAGIC = b"\x93PNSTOCK"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
ALIGNMENT_BYTES = 64  # arrays begin at multiples of it: a cache line, and what vector instructions like

_ZIP_METHODS = {zipfile.ZIP_STORED: "none", zipfile.ZIP_DEFLATED: "zlib"}
_VERSION = 1
_PREFIX = struct.Struct("<8sIII")
_FIRST_READ_BYTES = 8192  # enough for the header of some 60 arrays, so that one read is all
_MAX_TEXT_BYTES = 1 << 28
_USUAL_NPY_HEADER_BYTES = 256
_PIECE_BYTES = 256 * KIB
MAX_HEADER_BYTES = 16 * KIB  # more than NumPy allows a header to have
_LENGTHS = {(1, 0): struct.Struct("<H"), (2, 0): struct.Struct("<I")}
_READ_HEADER = {(1, 0): npy_format.read_array_header_1_0, (2, 0): npy_format.read_array_header_2_0}
_LOCAL_HEADER = struct.Struct("<4s22xHH")
"""In front of each member: a magic word, and at the end the lengths of a name and of extra fields."""
_IS_ENCRYPTED = 0x1

Values = NDArray[Any]


@dataclass(frozen=True)
class BatchArray:
    name: str
    dtype: DType
    shape: tuple[int, ...]
    offset: int
    num_bytes: int  # in the file, compressed or not
    compression: str
    checksum: int | None  # CRC-32 of the values; None for pickled objects
    is_column_major: bool = False
    """NumPy's Fortran order: the values of a sample lie apart. Native files have none."""

    @property
    def array_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    @property
    def is_copyable(self) -> bool:
        """Whether the samples lie one after the other in the file, so that bytes can be copied out of it."""
        return self.compression == "none" and not self.is_column_major and not self.dtype.hasobject


@dataclass(frozen=True)
class BatchHeader:
    """All arrays of a file of `num_bytes`; each has the same number of samples."""

    path: Path
    layout: str
    num_bytes: int
    arrays: Mapping[str, BatchArray]

    @property
    def num_samples(self) -> int:
        return next((array.shape[0] for array in self.arrays.values()), 0)

    @property
    def has_objects(self) -> bool:
        return any(array.dtype.hasobject for array in self.arrays.values())

    @cached_property
    def record(self) -> BatchRecord:
        facts = [[array.name, array.dtype.str, array.shape, array.checksum] for array in self.arrays.values()]
        checksum = zlib.crc32(json.dumps(facts).encode())
        return BatchRecord(self.path.name, self.num_samples, self.num_bytes, checksum)

    def schema(self, names: ArrayNames | None = None) -> StoreSchema:
        specs = [
            ArraySpec.of_shape(array.name, array.dtype, array.shape, str(self.path))
            for array in self.arrays.values()
        ]
        return StoreSchema(tuple(specs), names or ArrayNames())


def check_lengths(file: str, shapes: Mapping[str, tuple[int, ...]]) -> None:
    lengths: dict[int, str] = {}
    for name, shape in shapes.items():
        if not shape:
            raise DataError(f"{file}: array '{name}' is a single value; its first axis must be samples")
        lengths.setdefault(shape[0], name)
    if len(lengths) > 1:
        (first, name), (other, other_name) = list(lengths.items())[:2]
        raise DataError(
            f"{file}: array '{name}' has {first} samples but '{other_name}' has {other}; write them again"
        )


def write_native(
    path: Path, stream: BinaryIO, arrays: Mapping[str, Values], compression: str, level: int | None
) -> BatchHeader:
    """Write arrays in order; compressing holds one of them at a time."""
    # The header is filled in when checksums are known: its size is that with the largest numbers there are.
    largest = (1 << 63) - 1
    widest = [
        BatchArray(name, array.dtype, array.shape, largest, largest, compression, (1 << 32) - 1)
        for name, array in arrays.items()
    ]
    header_bytes = position = _aligned(_PREFIX.size + len(_header_text(widest, largest)))
    stored = []
    for array, values in zip(widest, arrays.values(), strict=True):
        stream.seek(position)
        if compression == "none" or values.size == 0:
            crc, num_bytes, method = 0, values.nbytes, "none"
            for chunk in chunks(values):
                crc = zlib.crc32(chunk, crc)
                stream.write(chunk)
        else:
            crc, method = array_checksum(values), compression
            raw = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
            if compression == "zlib":
                num_bytes = stream.write(zlib.compress(raw, -1 if level is None else level))
            else:
                num_bytes = stream.write(_arrow_codec(compression, level).compress(raw))
        stored.append(replace(array, offset=position, num_bytes=num_bytes, checksum=crc, compression=method))
        position = _aligned(position + num_bytes)
    stream.truncate(position)
    text = _header_text(stored, position).ljust(header_bytes - _PREFIX.size)
    stream.seek(0)
    stream.write(_PREFIX.pack(NATIVE_MAGIC, _VERSION, len(text), zlib.crc32(text)) + text)
    return BatchHeader(path, "native", position, {array.name: array for array in stored})


def _aligned(position: int) -> int:
    return -(-position // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


def _header_text(arrays: Sequence[BatchArray], file_bytes: int) -> bytes:
    items = [
        {"name": array.name, "dtype": array.dtype.str, "shape": array.shape, "offset": array.offset}
        | {"num_bytes": array.num_bytes, "compression": array.compression, "crc32": array.checksum}
        for array in arrays
    ]
    return json.dumps({"file_bytes": file_bytes, "arrays": items}, separators=(",", ":")).encode()


def read_native_header(path: Path, stream: BinaryIO, file_bytes: int) -> BatchHeader:
    """DataError if it is damaged, or says that the file should be longer."""
    start = stream.read(_FIRST_READ_BYTES)
    if len(start) < _PREFIX.size:
        raise DamagedFile(f"{path}: is cut short: it has {file_bytes} bytes and not even a header")
    _, version, text_bytes, crc = _PREFIX.unpack_from(start)
    if version != _VERSION:
        raise DataError(
            f"{path}: has version {version} of the batch layout, but this Penstock reads {_VERSION}; upgrade it"
        )
    text = start[_PREFIX.size : _PREFIX.size + text_bytes]
    if len(text) < text_bytes <= _MAX_TEXT_BYTES:
        text += stream.read(text_bytes - len(text))
    if len(text) != text_bytes or zlib.crc32(text) != crc:
        raise DamagedFile(f"{path}: its header is damaged or cut short")
    document = json.loads(text)
    if document["file_bytes"] != file_bytes:
        raise DamagedFile(
            f"{path}: has {file_bytes} bytes but was written with {document['file_bytes']}: "
            "it was cut short or something was appended"
        )
    arrays = {}
    for item in document["arrays"]:
        dtype, shape = np.dtype(item.pop("dtype")), tuple(item.pop("shape"))
        array = BatchArray(dtype=dtype, shape=shape, checksum=item.pop("crc32"), **item)
        is_inside = 0 <= array.offset <= array.offset + array.num_bytes <= file_bytes
        is_whole = array.compression != "none" or array.num_bytes == array.array_bytes
        is_known = array.compression in COMPRESSIONS and not dtype.hasobject
        if not (is_inside and is_whole and is_known and all(length >= 0 for length in shape)):
            raise DamagedFile(
                f"{path}: array '{array.name}': its header makes no sense", "write the file again"
            )
        arrays[array.name] = array
    check_lengths(str(path), {name: array.shape for name, array in arrays.items()})
    return BatchHeader(path, "native", file_bytes, arrays)


def write_npz(stream: BinaryIO, arrays: Mapping[str, Values], compression: str, level: int | None) -> None:
    """The bytes depend on nothing but the arrays."""
    method = next(method for method, name in _ZIP_METHODS.items() if name == compression)
    with zipfile.ZipFile(stream, "w", method, compresslevel=level) as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                member.write(npy_header(array.dtype, array.shape))
                for chunk in chunks(array):
                    member.write(chunk)


def read_npz_header(path: Path, stream: BinaryIO, file_bytes: int) -> BatchHeader:
    with reading_archive(str(path)), zipfile.ZipFile(stream) as archive:
        members = npz_members(
            str(path), archive, lambda size, offset: os.pread(stream.fileno(), size, offset)
        )
        arrays = [_member_array(*member) for member in members]
    if not arrays:
        raise DataError(f"{path}: has no arrays in it; .npz files hold .npy members")
    if not any(array.dtype.hasobject for array in arrays):
        check_lengths(str(path), {array.name: array.shape for array in arrays})
    return BatchHeader(path, "npz", file_bytes, {array.name: array for array in arrays})


def _member_array(info: zipfile.ZipInfo, label: str, start: int, content: bytes) -> BatchArray:
    is_stored = info.compress_type == zipfile.ZIP_STORED
    beginning = io.BytesIO(content)
    header = read_npy_header(beginning, label)
    header_bytes = beginning.tell()
    array_bytes = math.prod(header.shape) * header.dtype.itemsize
    if not header.dtype.hasobject and info.file_size - header_bytes != array_bytes:
        raise DamagedFile(
            f"{label} is cut short or damaged: its shape needs {array_bytes} bytes, but there are "
            f"{info.file_size - header_bytes}"
        )
    # The archive has the checksum of header and values together.
    crc = checksum_of_rest(info.CRC, zlib.crc32(content[:header_bytes]), array_bytes)
    return BatchArray(
        name=info.filename.removesuffix(".npy"),
        dtype=header.dtype,
        shape=header.shape,
        offset=start + header_bytes if is_stored else start,
        num_bytes=array_bytes if is_stored else info.compress_size,
        compression=_ZIP_METHODS[info.compress_type],
        checksum=None if header.dtype.hasobject else crc,
        is_column_major=header.is_column_major,
    )


def decompressed(layout: str, array: BatchArray, stored: memoryview) -> Any:
    """ValueError when these are no such bytes."""
    if layout == "npz":  # archives have no zlib frame, and the member a header in front of the values
        return _inflated(stored, array.array_bytes, -zlib.MAX_WBITS, MAX_HEADER_BYTES)
    if array.compression == "zlib":
        return _inflated(stored, array.array_bytes, zlib.MAX_WBITS, 0)
    try:
        return _arrow_codec(array.compression, None).decompress(stored, decompressed_size=array.array_bytes)
    except OSError as error:
        raise ValueError(str(error)) from error


def _arrow_codec(compression: str, level: int | None) -> Any:
    import pyarrow as pa  # 40 MB of memory: only those who ask for its codecs pay for them

    name: Any = compression
    return pa.Codec(name, compression_level=level)


def _inflated(stored: memoryview, array_bytes: int, window: int, max_before: int) -> memoryview:
    """The last `array_bytes` of what decompresses, which may have a header of `max_before` bytes; held once."""
    unpacker = zlib.decompressobj(window)
    values = memoryview(bytearray(array_bytes + max_before + 1))
    end = 0
    try:
        for start in range(0, len(stored), _PIECE_BYTES):
            packed: Any = stored[start : start + _PIECE_BYTES]
            while packed and end < len(values):
                piece = unpacker.decompress(packed, min(_PIECE_BYTES, len(values) - end))
                values[end : end + len(piece)] = piece
                end += len(piece)
                packed = unpacker.unconsumed_tail
    except zlib.error as error:
        raise ValueError(str(error)) from error
    if end == len(values) or (unpacker.eof and end < array_bytes):
        raise ValueError(f"it does not unpack to {array_bytes} bytes")
    if not unpacker.eof:
        raise ValueError("it is cut short")
    return values[end - array_bytes : end]


# Headers of `.npy` arrays, and where the members of an `.npz` archive lie.


class NpyHeader(NamedTuple):
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    is_column_major: bool
    """NumPy's Fortran order, where that makes a difference: the values of a row lie apart."""


def read_npy_header(stream: IO[bytes], label: str) -> NpyHeader:
    """The header that a stream begins with; the values come next. Messages begin with `label`."""
    try:
        version = npy_format.read_magic(stream)
        if version not in _READ_HEADER:
            raise DataError(
                f"{label}: is a NumPy array of named fields; write each field as an array of its own"
            )
        length = _LENGTHS[version].unpack(stream.read(_LENGTHS[version].size))[0]
        return _parsed(version, length, stream.read(length))
    # All that NumPy raises for a header that is no Python dict any more.
    except (ValueError, struct.error, TypeError, SyntaxError, tokenize.TokenError, RecursionError) as error:
        reason = (str(error).splitlines() or ["no reason is known"])[0]
        raise DataError(f"{label}: is not a NumPy array, or is cut short: {reason}") from error


@functools.lru_cache(maxsize=256)
def _parsed(version: tuple[int, int], num_bytes: int, text: bytes) -> NpyHeader:
    # Many files have the same headers, and NumPy takes long to parse them.
    stream = io.BytesIO(_LENGTHS[version].pack(num_bytes) + text)
    shape, is_column_major, dtype = _READ_HEADER[version](stream)
    if any(length < 0 for length in shape):
        raise ValueError(f"its shape is {shape}")
    return NpyHeader(dtype, shape, is_column_major and len(shape) > 1)


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    stream = io.BytesIO()
    fields = {"descr": npy_format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    npy_format.write_array_header_1_0(stream, fields)
    return stream.getvalue()


def npz_members(
    path: str, archive: zipfile.ZipFile, read_at: Callable[[int, int], bytes]
) -> Iterator[tuple[zipfile.ZipInfo, str, int, bytes]]:
    """Each array: its member, its label, the offset of its first byte, and its first bytes, with all of the header."""
    for info in archive.infolist():
        if not info.filename.endswith(".npy"):
            continue
        label = f"{path}: array '{info.filename.removesuffix('.npy')}'"
        if info.flag_bits & _IS_ENCRYPTED:
            raise DataError(f"{label} is encrypted; write it without a password")
        magic, *lengths = _LOCAL_HEADER.unpack(read_at(_LOCAL_HEADER.size, info.header_offset))
        if magic != b"PK\x03\x04":
            raise zipfile.BadZipFile(f"no member where {info.filename!r} should be")
        start = int(info.header_offset + _LOCAL_HEADER.size + sum(lengths))
        if info.compress_type == zipfile.ZIP_STORED:
            content = read_at(min(info.file_size, _USUAL_NPY_HEADER_BYTES), start)
            if content[6:7] != b"\x01" or int.from_bytes(content[8:10], "little") + 10 > len(content):
                # Few headers are longer than usual.
                content = read_at(min(info.file_size, MAX_HEADER_BYTES), start)
        elif info.compress_type == zipfile.ZIP_DEFLATED:
            with reading_archive(label), archive.open(info) as member:
                content = member.read(min(info.file_size, MAX_HEADER_BYTES))
        else:
            raise DataError(
                f"{label} is compressed in a way that NumPy does not write; write it with np.savez"
            )
        yield info, label, start, content


@contextmanager
def reading_archive(path: str) -> Iterator[None]:
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError) as error:
        raise DamagedFile(
            f"{path}: is not a whole .npz file (a zip archive): {error}", "was it cut short? write it again"
        ) from error
