"""The files of a store whose bytes have known offsets before a value is written.

    npy   X_train.npy  labels_train.npz (one member for each head)  masks_train.npz  X_val.npy ...
    hdf5  train.h5 with a data set for each array

A group of features, `strategic_features_{group}`, is X_{group}_train.npy. With `heads: npy` each head is a file of its
own: labels_train/{head}.npy. An array that is none of features, labels and masks is `{name}_train.npy`.

Files are made at their full size, and values go to their offsets in any order, by any process, and again after a kill.
The headers of an archive need the checksums of its members: `finish_archive` writes them at the end.
"""

import errno
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge.merge_options import MergeOptions
from penstock.readers.batch_layouts import ALIGNMENT_BYTES, npy_header
from penstock.readers.store_schema import LABELS, MASKS, ArraySpec, StoreSchema
from penstock.runtime.checksums import joined_checksum
from penstock.runtime.durable import PARTIAL_SUFFIX

Key = tuple[str, str]
"""Split and array."""
Wrote = dict[Key, tuple[int, int]]
"""The bytes that a task wrote and their CRC-32: by split and array, or by split and file where a target has many."""

_LOCAL_HEADER_BYTES, _ZIP64_FIELD_BYTES = 30, 20
_PADDING_FIELD = struct.Struct("<2H")
_PADDING_ID = 0xD935
# What an array becomes, what its name is then of, and what that must not have in it.
_FILE = ("a file of its own", "one", "/\\")
_MEMBER = ("in an .npz file", "a member", "\\")


@dataclass(frozen=True, slots=True)
class Extent:
    array: ArraySpec
    split: str
    num_rows: int
    file: str
    offset: int
    member: str | None = None
    """Its name in a file that has several."""

    @property
    def num_bytes(self) -> int:
        return self.num_rows * self.array.row_bytes


Extents = dict[Key, Extent]


@dataclass(frozen=True, slots=True)
class StoreFile:
    name: str
    split: str
    num_rows: int
    members: tuple[tuple[str | None, ArraySpec], ...]

    @property
    def is_archive(self) -> bool:
        return self.name.endswith(".npz")


def store_files(
    schema: StoreSchema, split_counts: Mapping[str, int], options: MergeOptions
) -> tuple[StoreFile, ...]:
    """All files of a store; none where the target is many files. Arrays that the target cannot hold are refused."""
    if options.has_part_files:
        from penstock.prep.merge.arrow_parts import check_types

        check_types(schema, options.target)
        return ()
    if options.target == "hdf5":
        _check_hdf5(schema)
        sets = tuple((spec.name, spec) for spec in schema.arrays)
        return tuple(StoreFile(f"{split}.h5", split, count, sets) for split, count in split_counts.items())
    alone: list[tuple[str, ArraySpec]] = []
    heads: dict[str, list[tuple[str, ArraySpec]]] = {LABELS: [], MASKS: []}
    names = schema.names
    for spec in schema.arrays:
        part, head = names.part_of(spec.name)
        if head is not None:
            heads[part].append((head, spec))
            continue
        is_features = spec.name == names.features or spec.name.startswith(f"{names.features}_")
        stem = f"X{spec.name.removeprefix(names.features)}" if is_features else spec.name
        _check_name(stem, spec.name, *_FILE)
        alone.append((stem, spec))
    files = []
    for split, count in split_counts.items():
        files += [StoreFile(f"{stem}_{split}.npy", split, count, ((None, spec),)) for stem, spec in alone]
        for part, members in heads.items():
            if options.heads == "npz" and members:
                files.append(StoreFile(f"{part}_{split}.npz", split, count, tuple(members)))
            for head, spec in members:
                if options.heads == "npz":
                    _check_name(head, spec.name, *_MEMBER)
                else:
                    _check_name(head, spec.name, *_FILE)
                    files.append(StoreFile(f"{part}_{split}/{head}.npy", split, count, ((None, spec),)))
    taken: set[str] = set()
    for file in files:
        if file.name in taken:
            raise DataError(
                f"array '{file.members[0][1].name}' would be the file {file.name}, which is that of another array; "
                "give it another name"
            )
        taken.add(file.name)
    return tuple(files)


def _check_name(name: str, array: str, what: str, example: str, forbidden: str) -> None:
    """Names come from files that anybody may have written: none may lead out of the store, or hide in it."""
    parts = name.split("/") if forbidden == "\\" else [name]
    is_right = all(part and part[0] != "." and part.isprintable() for part in parts)
    if not is_right or any(separator in name for separator in forbidden):
        raise DataError(
            f"array {array!r} cannot be {what}: {name!r} is no name of {example}; give it a name without "
            f"{' and '.join(forbidden)} that does not begin with a dot"
        )


def lay_out(files: Sequence[StoreFile], folder: Path) -> Extents:
    """Make all files at their full size, unless they are there; returns where values go."""
    extents = []
    for file in files:
        if file.name.endswith(".h5"):
            extents += _lay_out_hdf5(file, folder)
            continue
        position, header = 0, b""
        for member, spec in file.members:
            header = npy_header(spec.dtype, spec.shape(file.num_rows))
            if file.is_archive:
                position += _member_header_bytes(f"{member}.npy", position)
            extent = Extent(spec, file.split, file.num_rows, file.name, position + len(header), member)
            position = extent.offset + extent.num_bytes
            extents.append(extent)
        reserve(folder / file.name, position, b"" if file.is_archive else header)
    return {(extent.split, extent.array.name): extent for extent in extents}


def reserve(path: Path, num_bytes: int, beginning: bytes = b"") -> None:
    """Make a file of that size, with its bytes reserved on the disk; a file that is there keeps its bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        os.ftruncate(descriptor, num_bytes)
        if num_bytes:
            try:
                os.posix_fallocate(descriptor, 0, num_bytes)
            except OSError as error:
                if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):  # this file system cannot
                    raise
        os.pwrite(descriptor, beginning, 0)
    finally:
        os.close(descriptor)


def finish_archive(path: Path, extents: Sequence[Extent], checksums: Mapping[Key, int]) -> None:
    """Write the headers of members whose values are there, and the directory; the same on every day."""
    infos = []
    position = 0
    with path.open("r+b") as stream:
        for extent in extents:
            header = npy_header(extent.array.dtype, extent.array.shape(extent.num_rows))
            info = zipfile.ZipInfo(f"{extent.member}.npy")
            info.header_offset = position
            info.external_attr = 0o600 << 16
            info.file_size = info.compress_size = len(header) + extent.num_bytes
            values = checksums[extent.split, extent.array.name]
            info.CRC = joined_checksum(zlib.crc32(header), values, extent.num_bytes)
            padding = _member_header_bytes(info.filename, position) - _header_bytes(info.filename)
            info.extra = _PADDING_FIELD.pack(_PADDING_ID, padding) + bytes(padding)
            stream.seek(position)
            stream.write(info.FileHeader(zip64=True) + header)
            position = extent.offset + extent.num_bytes
            infos.append(info)
        stream.truncate(position)
        # Appending to what is no archive yet, zipfile writes a directory of all members that it knows.
        with zipfile.ZipFile(stream, "a") as archive:
            archive.filelist += infos


def _header_bytes(name: str) -> int:
    return _LOCAL_HEADER_BYTES + len(name.encode()) + _ZIP64_FIELD_BYTES + _PADDING_FIELD.size


def _member_header_bytes(name: str, start: int) -> int:
    """Padded so that values begin at multiples of 64 bytes: they can be mapped."""
    end = start + _header_bytes(name)
    return end + -end % ALIGNMENT_BYTES - start


def checksum_of(path: Path, extents: Sequence[Extent], checksums: Mapping[Key, int]) -> int:
    """Of a whole file, from those of its values; what lies between is read here."""
    crc = position = 0
    stretches = sorted(
        (extent.offset, extent.num_bytes, checksums[extent.split, extent.array.name])
        for extent in extents
        if extent.num_bytes
    )
    with path.open("rb", buffering=0) as stream:
        for offset, num_bytes, values_crc in [*stretches, (stream.seek(0, os.SEEK_END), 0, 0)]:
            crc = zlib.crc32(os.pread(stream.fileno(), offset - position, position), crc)
            crc = joined_checksum(crc, values_crc, num_bytes)
            position = offset + num_bytes
    return crc


def _check_hdf5(schema: StoreSchema) -> None:
    h5py = _h5py()
    for spec in schema.arrays:
        _check_name(spec.name, spec.name, "a data set", *_FILE[1:])
        try:
            h5py.h5t.py_create(spec.dtype, logical=True)
        except TypeError as error:
            raise DataError(
                f"array '{spec.name}' is {spec}, which target hdf5 does not hold; leave it out, or merge to npy"
            ) from error


def _lay_out_hdf5(file: StoreFile, folder: Path) -> list[Extent]:
    """The library lays out the file once, empty and sparse, and says where values belong."""
    h5py = _h5py()
    path, partial = folder / file.name, folder / f"{file.name}{PARTIAL_SUFFIX}"
    try:
        if not path.exists():
            with h5py.File(partial, "w", alignment_threshold=1, alignment_interval=ALIGNMENT_BYTES) as made:
                for _, spec in file.members:
                    how = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                    how.set_layout(h5py.h5d.CONTIGUOUS)
                    how.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
                    how.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
                    how.set_obj_track_times(False)
                    kind = h5py.h5t.py_create(spec.dtype, logical=True)
                    space = h5py.h5s.create_simple(spec.shape(file.num_rows))
                    h5py.h5d.create(made.id, spec.name.encode(), kind, space, how)
            partial.rename(path)
        with h5py.File(path, "r") as made:
            offsets = [made[spec.name].id.get_offset() for _, spec in file.members]
    except (OSError, RuntimeError) as error:
        # The library describes its own workings, in several lines.
        number = error.errno if isinstance(error, OSError) else None
        reason = os.strerror(number) if number else str(error).partition("\n")[0]
        raise DataError(
            f"{folder}: an empty HDF5 file of the size of {file.name} cannot be made there: {reason}; mend that, or "
            "merge to npy"
        ) from error
    num_bytes = path.stat().st_size
    reserve(path, num_bytes)
    return [
        Extent(spec, file.split, file.num_rows, file.name, num_bytes if offset is None else offset, member)
        for (member, spec), offset in zip(file.members, offsets, strict=True)
    ]


def _h5py() -> Any:
    try:
        import h5py  # type: ignore[import-untyped]
    except ImportError as error:
        raise ConfigError.at("target", "hdf5 needs h5py; install penstock[hdf5], or choose npy") from error
    return h5py
