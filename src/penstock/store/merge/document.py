"""What manifest.json says of a store."""

from pathlib import Path
from typing import Any

from penstock.store.documents import encoded_document, read_document
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.layout import Checksums, Place, file_checksum_of
from penstock.store.merge.options import MergeOptions, SplitShares
from penstock.store.merge.plan import MergePlan
from penstock.store.schema import ArrayNames

KIND = "penstock store"
VERSION = 1


def encoded_store(plan: MergePlan, checksums: Checksums) -> bytes:
    """Files with sizes and checksums, arrays with their places in them, splits and where all came from."""
    return encoded_document(KIND, VERSION, _body(plan, checksums))


def read_store(folder: Path, name: str = MANIFEST_NAME) -> dict[str, Any]:
    """The manifest of a store; DataError says why there is none."""
    return read_document(
        folder / name, KIND, VERSION, "there is none: no merge has finished here; run penstock merge"
    )


def options_of(document: dict[str, Any]) -> MergeOptions:
    """The options that decided the bytes of a store."""
    options = dict(document["options"])
    splits, names = options.pop("splits"), options.pop("names")
    return MergeOptions(
        **options,
        splits=SplitShares(**splits) if splits else None,
        names=ArrayNames(**names) if names else None,
    )


def _body(plan: MergePlan, checksums: Checksums) -> dict[str, Any]:
    return {
        "fingerprint": plan.fingerprint,
        "splits": plan.split_counts,
        "options": dict(plan.options.decisive),
        "schema": plan.schema.as_document(),
        "num_batches": len(plan.batches),
        "files": [
            {"name": file.name, "num_bytes": file.num_bytes, "crc32": file_checksum_of(file, checksums)}
            for file in plan.files
        ],
        "arrays": [_array(place, checksums[place.key]) for place in plan.places.values()],
    }


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
