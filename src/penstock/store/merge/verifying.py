"""Whether a store is what its manifest says, and what the batch files hold."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.batch_file import load_batch
from penstock.store.checksums import file_checksum
from penstock.store.merge.batches import find_batches
from penstock.store.merge.document import options_of, read_store
from penstock.store.merge.keys import KeyStream
from penstock.store.merge.order import places_of_rows
from penstock.store.merge.plan import MergePlan, plan_merge
from penstock.store.merge.stored import Samples, stored_arrays
from penstock.store.schema import StoreSchema

Arrays = dict[str, NDArray[Any]]
StoredArrays = Mapping[tuple[str, str], Samples]

SAMPLED_ROWS = 256
"""Samples that are compared value by value."""
_CURE = "penstock merge --restart writes the store anew"


def verify(output_dir: str | Path, intermediate_dir: str | Path, *, allow_pickle: bool = False) -> list[str]:
    """What differs between a store, its manifest and the batch files, one line each; an empty list is good.

    Files are compared by size and checksum; counts, heads and types with the batch files; and some samples,
    chosen at random, value by value.
    """
    store = Path(output_dir)
    try:
        document = read_store(store)
        differences = list(_file_differences(store, document))
        options = options_of(document)
        batches, source_samples = find_batches(
            Path(intermediate_dir), options.names, allow_pickle, options.types
        )
    except DataError as error:
        return [str(error)]
    plan = plan_merge(batches, options, source_samples)
    differences += _schema_differences(store, document, plan)
    return differences or list(_row_differences(store, document, plan))


def _file_differences(store: Path, document: dict[str, Any]) -> Iterator[str]:
    for item in document["files"]:
        path = store / item["name"]
        if not path.is_file():
            yield f"{path}: is missing; {_CURE}"
        elif path.stat().st_size != item["num_bytes"]:
            yield f"{path}: has {path.stat().st_size} bytes, not {item['num_bytes']}; {_CURE}"
        elif (crc := file_checksum(path)) != item["crc32"]:
            yield f"{path}: is damaged: its checksum is {crc:08x}, not {item['crc32']:08x}; {_CURE}"


def _schema_differences(store: Path, document: dict[str, Any], plan: MergePlan) -> Iterator[str]:
    difference = plan.schema.difference(StoreSchema.from_document(document["schema"]))
    if difference:
        yield f"{store}: {difference}, as the batch files have it"
    for split, count in plan.split_counts.items():
        found = document["splits"].get(split, 0)
        if found != count:
            yield f"{store}: split {split} has {found} samples, but the batch files give {count}"


def _row_differences(store: Path, document: dict[str, Any], plan: MergePlan) -> Iterator[str]:
    """Compare some samples; the first wrong one of each array is told."""
    rows = _sampled_rows(plan)
    batch_of = np.searchsorted(plan.first_rows, rows, side="right") - 1
    splits, positions = places_of_rows(plan, rows)
    stored = stored_arrays(store, document)
    told: set[str] = set()
    for batch in np.unique(batch_of).tolist():
        path, first_row = plan.batches.paths[batch], int(plan.first_rows[batch])
        is_pickled = bool(plan.batches.is_pickled[batch])
        arrays = load_batch(path, allow_pickle=is_pickled, mmap=True, schema=plan.batches.schema)
        for place in np.flatnonzero(batch_of == batch).tolist():
            row, position = int(rows[place]) - first_row, int(positions[place])
            split = plan.splitter.names[splits[place]]
            different = _different(arrays, stored, row, split, position)
            for name in (name for name in different if name not in told):
                told.add(name)
                yield (
                    f"{store}: array '{name}' of {split} differs at sample {position} from sample {row} of {path.name}"
                )


def _different(arrays: Arrays, stored: StoredArrays, row: int, split: str, position: int) -> list[str]:
    """The arrays in which a sample of the store is not that of the batch file."""
    return [
        name
        for name, array in arrays.items()
        if (split, name) in stored and stored[split, name][position].tobytes() != array[row].tobytes()
    ]


def _sampled_rows(plan: MergePlan) -> NDArray[np.int64]:
    total = plan.batches.total_samples
    if total <= SAMPLED_ROWS:
        return np.arange(total)
    keys = KeyStream("verify", plan.options.seed).of_rows(0, SAMPLED_ROWS)
    return np.unique(keys % np.uint64(total)).astype(np.int64)
