"""Whether a store is what its manifest says, what the batch files hold, and what was asked for. Nothing is written."""

import json
import math
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge.batches import BatchReader, adding_cure, find_batches
from penstock.prep.merge.options import MergeOptions
from penstock.prep.merge.plan import MergePlan, plan_merge
from penstock.prep.merge.splits import KeyStream
from penstock.prep.merge.staging import check_ended, check_free, other_options
from penstock.readers.batch_files import load_batch
from penstock.readers.store_manifest import MANIFEST_NAME, check_finished, read_store
from penstock.readers.store_schema import ArraySpec, StoreSchema
from penstock.runtime.checksums import file_checksum
from penstock.runtime.progress import ProgressLogger

SAMPLED_ROWS = 256

_CURE = "penstock merge --restart writes the store anew"
_MERGE_AGAIN = "penstock merge makes it of these"

RowReader = Callable[[int], NDArray[Any]]
"""The values of a sample of one array of a split, by its position."""


def verify(
    output_dir: str | Path,
    intermediate_dir: str | Path,
    *,
    options: MergeOptions | None = None,
    allow_pickle: bool = False,
    progress: ProgressLogger | None = None,
) -> list[str]:
    """What differs between a store and its manifest, the batch files, and `options` if given; an empty list is good.

    All files of both are read, and compared by their checksums; splits, heads and types with what the batch files
    give; and some samples, chosen at random, value by value. `progress` counts samples of batch files.
    """
    store, source = Path(output_dir), Path(intermediate_dir)
    try:
        if not (store / MANIFEST_NAME).exists():
            _check_merge(store, source, options or MergeOptions(), allow_pickle)
        document = read_store(store)
    except (ConfigError, DataError) as error:
        return [str(error)]
    differences = [*_file_differences(store, document)]
    for name, (found, wanted) in other_options(document, options).items() if options else ():
        differences.append(f"{store}: was merged with {name} {json.dumps(found)}, not {json.dumps(wanted)}")
    try:
        with adding_cure(source):
            made_with = MergeOptions.from_document(document["options"])
            batches, source_samples = find_batches(source, made_with.names, allow_pickle, made_with.types)
            plan = plan_merge(batches, made_with, source_samples)
    except (ConfigError, DataError) as error:
        return [*differences, str(error)]
    differences += list(_schema_differences(store, document, plan)) or _other_batches(store, document, plan)
    differences += _damaged_batches(plan, source, progress)
    return differences or list(_row_differences(store, document, plan))


def _check_merge(store: Path, source: Path, options: MergeOptions, allow_pickle: bool) -> None:
    """Where no merge has finished, refuse what a merge would refuse too: to merge is no advice then."""
    check_finished(source)
    check_ended(store)
    with adding_cure(source):
        batches, source_samples = find_batches(source, options.names, allow_pickle, options.types)
        check_free(store, plan_merge(batches, options, source_samples).file_names)


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


def _other_batches(store: Path, document: dict[str, Any], plan: MergePlan) -> list[str]:
    """By what the headers say of all values; the first file that is another is told."""
    paths, found = plan.batches.paths, plan.batches.content_checksums
    made_of = document.get("batch_checksums")
    if made_of == found or (made_of is None and document["fingerprint"] == plan.fingerprint):
        return []
    if made_of is None or len(made_of) != len(found):
        return [f"{store}: was made of other batch files than those in {paths[0].parent}; {_MERGE_AGAIN}"]
    others = [batch for batch, checksum in enumerate(found) if checksum != made_of[batch]]
    more = f", and {len(others) - 1:,} more are" if len(others) > 1 else ""
    return [f"{paths[others[0]]}: is another than {store} was made of{more}; {_MERGE_AGAIN}"]


def _damaged_batches(plan: MergePlan, source: Path, progress: ProgressLogger | None) -> Iterator[str]:
    """Read every value of every batch file, some at a time; old samples were read when they were found."""
    batches = plan.batches
    if progress is not None:
        progress.total = batches.total_samples
    for batch, num_samples in enumerate(batches.num_samples.tolist()):
        if not batches.is_pickled[batch]:
            try:
                with adding_cure(source), BatchReader(batches, batch) as reader:
                    for column in range(len(batches.schema.arrays)):
                        for _ in reader.chunks(column):
                            pass
            except DataError as error:
                yield str(error)
        if progress is not None:
            progress.advance(num_samples)


def _row_differences(store: Path, document: dict[str, Any], plan: MergePlan) -> Iterator[str]:
    """Compare some samples, value by value; the first wrong one of each array is told."""
    total, first_rows = plan.batches.total_samples, plan.batches.first_rows
    rows = np.arange(total)
    if total > SAMPLED_ROWS:
        keys = KeyStream("verify", plan.options.seed).of_rows(0, SAMPLED_ROWS)
        rows = np.unique(keys % np.uint64(total)).astype(np.int64)
    batch_of = np.searchsorted(first_rows[:-1], rows, side="right") - 1
    splits, positions = plan.positions_of(rows)
    stored = _row_readers(store, document)
    told: set[str] = set()
    for batch in np.unique(batch_of).tolist():
        path = plan.batches.paths[batch]
        is_pickled = bool(plan.batches.is_pickled[batch])
        arrays = load_batch(path, allow_pickle=is_pickled, mmap=True, schema=plan.batches.schema)
        for index in np.flatnonzero(batch_of == batch).tolist():
            row, position = int(rows[index] - first_rows[batch]), int(positions[index])
            split = plan.splitter.names[splits[index]]
            for name, array in arrays.items():
                read = stored.get((split, name))
                if name in told or read is None or read(position).tobytes() == array[row : row + 1].tobytes():
                    continue
                told.add(name)
                yield (
                    f"{store}: array '{name}' of {split} differs at sample {position} from sample {row} of {path.name}"
                )


def _row_readers(store: Path, document: dict[str, Any]) -> dict[tuple[str, str], RowReader]:
    """For each split and array of a store."""
    if document["options"]["target"] not in ("parquet", "ipc"):
        return {(item["split"], item["name"]): _file_rows(store, item) for item in document["arrays"]}
    schema = StoreSchema.from_document(document["schema"])
    readers: dict[tuple[str, str], RowReader] = {}
    for split in document["splits"]:
        names = [item["name"] for item in document["files"] if item["name"].startswith(f"{split}/")]
        readers |= {
            (split, name): read for name, read in _part_rows([store / name for name in names], schema.arrays)
        }
    return readers


def _file_rows(store: Path, item: dict[str, Any]) -> RowReader:
    dtype, width = np.dtype(item["dtype"]), math.prod(item["shape"][1:])

    def read(position: int) -> NDArray[Any]:
        # Mapping the file would leave some of it in memory for each row.
        start = item["offset"] + position * width * dtype.itemsize
        return np.fromfile(os.fspath(store / item["file"]), dtype, width, offset=start)

    return read


def _part_rows(paths: Sequence[Path], specs: Sequence[ArraySpec]) -> Iterator[tuple[str, RowReader]]:
    """Readers of all arrays; they share the group of rows that was looked at last."""
    from penstock.prep.merge.arrow_parts import group_sizes, read_group

    groups = [(path, group, rows) for path in paths for group, rows in enumerate(group_sizes(path))]
    firsts = [0, *accumulate(rows for _, _, rows in groups)]
    loaded: dict[int, Any] = {}

    def reader(spec: ArraySpec) -> RowReader:
        def read(position: int) -> NDArray[Any]:
            group = bisect_right(firsts, position) - 1
            if group not in loaded:
                loaded.clear()
                loaded[group] = read_group(*groups[group][:2])
            row = position - firsts[group]
            return np.asarray(loaded[group].column(spec.name)[row].as_py(), spec.dtype)

        return read

    for spec in specs:
        yield spec.name, reader(spec)
