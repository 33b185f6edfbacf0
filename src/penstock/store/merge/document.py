"""What manifest.json says of a store."""

from typing import Any

from penstock.store.merge.layout import Checksums, Place, file_checksum_of
from penstock.store.merge.plan import LAYOUT_VERSION, MergePlan

KIND = "penstock store"


def store_document(plan: MergePlan, checksums: Checksums) -> dict[str, Any]:
    """Files with sizes and checksums, arrays with their places in them, splits and where all came from."""
    options = plan.options
    return {
        "kind": KIND,
        "version": LAYOUT_VERSION,
        "fingerprint": plan.fingerprint,
        "target": options.target,
        "splits": plan.split_counts,
        "seed": options.seed,
        "shuffle": options.shuffle,
        "by": options.splits.by if options.splits else None,
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
