"""What manifest.json says of a store: files with sizes and checksums, arrays with their offsets, splits, origin."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.prep.merge.copy import Wrote
from penstock.prep.merge.layouts import Extents, checksum_of, finish_archive
from penstock.prep.merge.plan import MergePlan
from penstock.readers.store_manifest import STORE_KIND, STORE_VERSION, encoded_document
from penstock.runtime.checksums import joined_checksum
from penstock.runtime.durable import sync_path


def finished_store(plan: MergePlan, folder: Path, extents: Extents, done: Mapping[int, Wrote]) -> bytes:
    """Make the files of a store whole, of what all tasks wrote; returns its manifest."""
    in_order = [item for _, wrote in sorted(done.items()) for item in wrote.items()]
    checksums = dict.fromkeys(extents, 0)
    arrays: list[dict[str, Any]] = []
    if plan.options.has_part_files:
        files = [
            {"name": name, "num_bytes": num_bytes, "crc32": crc} for (_, name), (num_bytes, crc) in in_order
        ]
    else:
        for key, (num_bytes, crc) in in_order:
            checksums[key] = joined_checksum(checksums[key], crc, num_bytes)
        files = [
            _finished_file(folder / file.name, file.name, plan, extents, checksums) for file in plan.files
        ]
    for (split, name), extent in extents.items():
        array = {
            "split": split,
            "name": name,
            "file": extent.file,
            "member": extent.member,
            "offset": extent.offset,
        }
        shape = list(extent.array.shape(extent.num_rows))
        values = {"dtype": extent.array.dtype.str, "shape": shape, "crc32": checksums[split, name]}
        arrays.append(array | values)
    body = {
        "fingerprint": plan.fingerprint,
        "splits": plan.split_counts,
        "options": dict(plan.options.decisive),
        "schema": plan.schema.as_document(),
        "num_batches": len(plan.batches),
        "batch_checksums": plan.batches.content_checksums,
        "files": files,
        "arrays": arrays,
    }
    return encoded_document(STORE_KIND, STORE_VERSION, body)


def _finished_file(
    path: Path, name: str, plan: MergePlan, extents: Extents, checksums: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    own = [extent for extent in extents.values() if extent.file == name]
    if path.suffix == ".npz":
        finish_archive(path, own, checksums)
    if plan.options.durable:
        sync_path(path)
    return {"name": name, "num_bytes": path.stat().st_size, "crc32": checksum_of(path, own, checksums)}
