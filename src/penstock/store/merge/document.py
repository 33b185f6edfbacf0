"""What manifest.json says of a store."""

import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.config.errors import DataError
from penstock.store.damage import DamagedFile
from penstock.store.documents import encoded_document, read_document
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.layouts.store_file import Checksums, Place, file_checksum_of
from penstock.store.merge.layouts.targets import PartChecksums, joined
from penstock.store.merge.options import MergeOptions, SplitShares
from penstock.store.merge.plan import MergePlan
from penstock.store.merge.source.batches import Batches
from penstock.store.merge.source.declared_types import DeclaredTypes
from penstock.store.schema import ArrayNames

KIND = "penstock store"
VERSION = 1


class DamagedStore(DataError):
    """The manifest of a store is not what was written."""


def encoded_store(plan: MergePlan, done: Mapping[int, PartChecksums]) -> bytes:
    """Files with sizes and checksums, arrays with their places in them, splits and where all came from."""
    if plan.options.has_part_files:
        wrote = [item for _, checksums in sorted(done.items()) for item in checksums.items()]
        files = [_file(name, num_bytes, crc) for (_, name), (crc, num_bytes) in wrote]
        return encoded_document(KIND, VERSION, {**_body(plan), "files": files, "arrays": []})
    sums = whole_checksums(plan, done)
    files = [_file(file.name, file.num_bytes, file_checksum_of(file, sums)) for file in plan.files]
    arrays = [_array(place, sums[place.key]) for place in plan.places.values()]
    return encoded_document(KIND, VERSION, {**_body(plan), "files": files, "arrays": arrays})


def whole_checksums(plan: MergePlan, done: Mapping[int, PartChecksums]) -> Checksums:
    """Of all values of each place: those of the parts, in order, behind each other."""
    sums = dict.fromkeys(plan.places, (0, 0))
    for _, checksums in sorted(done.items()):
        for key, later in checksums.items():
            sums[key] = joined(sums[key], later)
    return {key: crc for key, (crc, _) in sums.items()}


def read_store(folder: Path, name: str = MANIFEST_NAME) -> dict[str, Any]:
    """The manifest of a store; DataError says why there is none."""
    absent = "there is none: no merge has finished here; run penstock merge"
    try:
        return read_document(folder / name, KIND, VERSION, absent)
    except DamagedFile as error:
        # Without it nobody knows which files are of the store: a merge would replace none of them.
        cure = "remove it and the files of the store beside it, and merge again, or choose another output_dir"
        raise DamagedStore(f"{error.problem}; {cure}") from error


def options_of(document: dict[str, Any]) -> MergeOptions:
    """The options that decided the bytes of a store."""
    options = dict(document["options"])
    splits, names, types = options.pop("splits"), options.pop("names"), options.pop("types", None)
    return MergeOptions(
        **options,
        splits=SplitShares(**splits) if splits else None,
        names=ArrayNames(**names) if names else None,
        types=DeclaredTypes(**types) if types else None,
    )


def _body(plan: MergePlan) -> dict[str, Any]:
    return {
        "fingerprint": plan.fingerprint,
        "splits": plan.split_counts,
        "options": dict(plan.options.decisive),
        "schema": plan.schema.as_document(),
        "num_batches": len(plan.batches),
        "batch_checksums": batch_checksums(plan.batches),
    }


def batch_checksums(batches: Batches) -> list[int]:
    """Of the samples of each batch file, from what its header says of the arrays."""
    return [
        zlib.crc32(checksums.tobytes(), num_samples)
        for checksums, num_samples in zip(batches.checksums, batches.num_samples.tolist(), strict=True)
    ]


def _file(name: str, num_bytes: int, crc: int) -> dict[str, Any]:
    return {"name": name, "num_bytes": num_bytes, "crc32": crc}


def _array(place: Place, checksum: int) -> dict[str, Any]:
    return {
        "split": place.split,
        "name": place.array.name,
        "file": place.file,
        "member": place.member,
        "offset": place.offset,
        "dtype": place.array.dtype.str,
        "shape": list(place.array.shape(place.num_rows)),
        "crc32": checksum,
    }
