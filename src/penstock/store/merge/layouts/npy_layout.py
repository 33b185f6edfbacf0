"""The files of a store of `.npy` arrays: what stands where in them, known before a value is written.

    X_train.npy  labels_train.npz (one member for each head)  masks_train.npz  X_val.npy ...

A group of features, `strategic_features_{group}`, is X_{group}_train.npy. With `heads: npy` each head is a file of its
own: labels_train/{head}.npy. An array that is none of features, labels and masks is `{name}_train.npy`.
"""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.config.errors import DataError
from penstock.store.batch_file.npz import npy_header
from penstock.store.checksums import joined_checksum
from penstock.store.merge.layouts.array_names import check_file_name, check_member_name
from penstock.store.merge.layouts.store_file import Checksums, Fixed, Place, StoreFile
from penstock.store.merge.layouts.zip_layout import ZipMember, directory, directory_bytes
from penstock.store.schema import ArraySpec, StoreSchema


@dataclass(frozen=True, slots=True)
class NpyFile:
    """One array in a file of its own."""

    place: Place

    @property
    def name(self) -> str:
        """Relative to the store."""
        return self.place.file

    @property
    def places(self) -> tuple[Place, ...]:
        """What is in it."""
        return (self.place,)

    @property
    def num_bytes(self) -> int:
        """Of the whole file."""
        return self.place.offset + self.place.num_bytes

    def pieces(self, checksums: Checksums) -> Iterator[Fixed | Place]:
        """The whole file in order."""
        yield Fixed(0, header_of(self.place.array, self.place.num_rows))
        yield self.place


@dataclass(frozen=True, slots=True)
class NpzFile:
    """The arrays of several heads as members of an archive."""

    name: str
    members: tuple[ZipMember, ...]
    places: tuple[Place, ...]

    @property
    def num_bytes(self) -> int:
        """Of the whole file."""
        return self.members[-1].end + directory_bytes(self.members)

    def pieces(self, checksums: Checksums) -> Iterator[Fixed | Place]:
        """The whole file in order; the archive has a checksum of header and values of each member."""
        sums = []
        for member, place in zip(self.members, self.places, strict=True):
            header = header_of(place.array, place.num_rows)
            sums.append(joined_checksum(zlib.crc32(header), checksums[place.key], place.num_bytes))
            yield Fixed(member.header_offset, member.local_header(sums[-1]) + header)
            yield place
        yield Fixed(self.members[-1].end, directory(self.members, sums, self.members[-1].end))


def npy_files(
    schema: StoreSchema, num_rows: Mapping[str, int], heads_in_one_file: bool = True
) -> tuple[StoreFile, ...]:
    """All files of a store with so many rows in each split."""
    files: list[StoreFile] = []
    for split, count in num_rows.items():
        for stem, arrays in _stems(schema):
            if list(arrays) == [None]:
                check_file_name(stem, arrays[None].name)
                files.append(_npy_file(f"{stem}_{split}.npy", arrays[None], split, count))
            elif heads_in_one_file:
                files.append(_npz_file(f"{stem}_{split}.npz", arrays, split, count))
            else:
                for head, array in arrays.items():
                    check_file_name(str(head), array.name)
                    files.append(_npy_file(f"{stem}_{split}/{head}.npy", array, split, count))
    _check_names(files)
    return tuple(files)


def _check_names(files: Sequence[StoreFile]) -> None:
    taken: set[str] = set()
    for file in files:
        if file.name in taken:
            raise DataError(
                f"array '{file.places[0].array.name}' would be the file {file.name}, which is that of another array; "
                "give it another name"
            )
        taken.add(file.name)


def header_of(array: ArraySpec, num_rows: int) -> bytes:
    """What stands in front of the values of an array in `.npy` form."""
    nothing = np.broadcast_to(np.zeros((), array.dtype), array.shape(num_rows))
    return npy_header(nothing)


def _stems(schema: StoreSchema) -> list[tuple[str, dict[str | None, ArraySpec]]]:
    """What file names begin with, and which arrays they have, by head; None where it is not of a head."""
    names = schema.names
    labels: dict[str | None, ArraySpec] = {}
    masks: dict[str | None, ArraySpec] = {}
    alone: list[tuple[str, dict[str | None, ArraySpec]]] = []
    for spec in schema.arrays:
        if spec.name.startswith(names.labels):
            labels[spec.name.removeprefix(names.labels)] = spec
        elif spec.name.startswith(names.masks):
            masks[spec.name.removeprefix(names.masks)] = spec
        else:
            is_features = spec.name == names.features or spec.name.startswith(f"{names.features}_")
            stem = f"X{spec.name.removeprefix(names.features)}" if is_features else spec.name
            alone.append((stem, {None: spec}))
    heads = [(stem, found) for stem, found in (("labels", labels), ("masks", masks)) if found]
    return alone + heads


def _npy_file(name: str, array: ArraySpec, split: str, num_rows: int) -> NpyFile:
    return NpyFile(Place(array, split, num_rows, name, None, len(header_of(array, num_rows))))


def _npz_file(name: str, arrays: Mapping[str | None, ArraySpec], split: str, num_rows: int) -> NpzFile:
    members: list[ZipMember] = []
    places: list[Place] = []
    position = 0
    for head, array in arrays.items():
        check_member_name(str(head), array.name)
        header_bytes = len(header_of(array, num_rows))
        member = ZipMember(f"{head}.npy", position, header_bytes + num_rows * array.row_bytes)
        members.append(member)
        places.append(Place(array, split, num_rows, name, str(head), member.offset + header_bytes))
        position = member.end
    return NpzFile(name, tuple(members), tuple(places))
