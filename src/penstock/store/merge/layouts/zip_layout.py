"""The bytes of a zip archive around members that are stored as they are.

Where a member begins does not depend on its bytes, so that they can be written before, after or beside the rest, in any
order. All sizes are written the way of large archives (zip64): one way for all. Values begin at multiples of 64 bytes,
so that they can be mapped.
"""

import struct
from dataclasses import dataclass

ALIGNMENT_BYTES = 64

_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LARGE_END = struct.Struct("<4sQ2H2L4Q")
_LARGE_END_PLACE = struct.Struct("<4sLQL")
_END = struct.Struct("<4s4H2LH")
_LOCAL_SIZES = struct.Struct("<2H2Q")
_CENTRAL_SIZES = struct.Struct("<2H3Q")
_PADDING = struct.Struct("<2H")

_VERSION = 45
"""The first with large sizes."""
_UTF8_NAMES = 1 << 11
_FIRST_DAY = 1 << 5 | 1
"""The 1st of January 1980: the same arrays give the same bytes on every day."""
_LARGE, _LARGE_COUNT = 0xFFFFFFFF, 0xFFFF
"""Instead of a number: look for it in the larger field."""
_SIZES_ID, _PADDING_ID = 1, 0xD935
_OWN_BYTES = 0o600 << 16
"""Rights of the file when it is unpacked."""


@dataclass(frozen=True, slots=True)
class ZipMember:
    """A member, and where it lies."""

    name: str
    header_offset: int
    num_bytes: int

    @property
    def _encoded_name(self) -> bytes:
        return self.name.encode()

    @property
    def _padding_bytes(self) -> int:
        """So that what follows is aligned; a field of padding has four bytes at least."""
        end = self.header_offset + _LOCAL.size + len(self._encoded_name) + _LOCAL_SIZES.size + _PADDING.size
        return -end % ALIGNMENT_BYTES

    @property
    def offset(self) -> int:
        """Where its bytes begin."""
        extra_bytes = _LOCAL_SIZES.size + _PADDING.size + self._padding_bytes
        return self.header_offset + _LOCAL.size + len(self._encoded_name) + extra_bytes

    @property
    def end(self) -> int:
        """Where the next one can begin."""
        return self.offset + self.num_bytes

    def local_header(self, checksum: int) -> bytes:
        """What stands in front of its bytes."""
        sizes = _LOCAL_SIZES.pack(_SIZES_ID, 16, self.num_bytes, self.num_bytes)
        extra = sizes + _PADDING.pack(_PADDING_ID, self._padding_bytes) + bytes(self._padding_bytes)
        name = self._encoded_name
        head = _LOCAL.pack(
            b"PK\3\4",
            _VERSION,
            _UTF8_NAMES,
            0,
            0,
            _FIRST_DAY,
            checksum,
            _LARGE,
            _LARGE,
            len(name),
            len(extra),
        )
        return head + name + extra

    def central_header(self, checksum: int) -> bytes:
        """Its entry in the directory at the end of the archive."""
        extra = _CENTRAL_SIZES.pack(_SIZES_ID, 24, self.num_bytes, self.num_bytes, self.header_offset)
        name = self._encoded_name
        made_by, needs = _VERSION | 3 << 8, _VERSION
        head = _CENTRAL.pack(
            *(b"PK\1\2", made_by, needs, _UTF8_NAMES, 0, 0, _FIRST_DAY, checksum, _LARGE, _LARGE),
            *(len(name), len(extra), 0, 0, 0, _OWN_BYTES, _LARGE),
        )
        return head + name + extra


def directory_bytes(members: tuple[ZipMember, ...]) -> int:
    """Of everything after the last member."""
    names = sum(_CENTRAL.size + _CENTRAL_SIZES.size + len(member.name.encode()) for member in members)
    return names + _LARGE_END.size + _LARGE_END_PLACE.size + _END.size


def directory(members: tuple[ZipMember, ...], checksums: list[int], offset: int) -> bytes:
    """Everything after the last member, which ends at `offset`."""
    entries = b"".join(
        member.central_header(checksum) for member, checksum in zip(members, checksums, strict=True)
    )
    count, end = len(members), offset + len(entries)
    rest_bytes = _LARGE_END.size - 12
    return b"".join(
        (
            entries,
            _LARGE_END.pack(
                *(b"PK\6\6", rest_bytes, _VERSION, _VERSION, 0, 0, count, count, len(entries), offset)
            ),
            _LARGE_END_PLACE.pack(b"PK\6\7", 0, end, 1),
            _END.pack(b"PK\5\6", 0, 0, _LARGE_COUNT, _LARGE_COUNT, _LARGE, _LARGE, 0),
        )
    )
