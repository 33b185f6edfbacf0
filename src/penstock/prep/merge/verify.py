"""Whether a store is what its manifest says, what the batch files hold, and what was asked for. Nothing is written."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, DataError
from penstock.prep.contents import read_samples, store_contents
from penstock.prep.merge.batches import BatchReader, adding_cure, find_batches
from penstock.prep.merge.merge_options import MergeOptions
from penstock.prep.merge.plan import KeyStream, MergePlan, plan_merge
from penstock.prep.merge.staging import check_ended, check_free, other_options
from penstock.readers.batch_files import load_batch
from penstock.readers.store_schema import MANIFEST_NAME, StoreSchema, check_finished, read_store
from penstock.runtime.checksums import file_checksum
from penstock.runtime.progress import ProgressLogger

SAMPLED_ROWS = 256

_CURE = "penstock merge --restart writes the store again"
_MERGE_AGAIN = "penstock merge makes it of these"

Numbers = NDArray[np.int64]


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
            # To merge is no advice where a merge would refuse it too.
            check_finished(source)
            check_ended(store)
            planned = replace(options or MergeOptions(), allow_pickle=allow_pickle)
            with adding_cure(source):
                check_free(store, plan_merge(find_batches(source, planned), planned).file_names)
        document = read_store(store)
    except (ConfigError, DataError) as error:
        return [str(error)]
    differences = [*_file_differences(store, document)]
    for name, (found, wanted) in other_options(document, options).items() if options else ():
        differences.append(f"{store}: was merged with {name} {json.dumps(found)}, not {json.dumps(wanted)}")
    try:
        with adding_cure(source):
            made_with = MergeOptions.from_document({**document["options"], "allow_pickle": allow_pickle})
            plan = plan_merge(find_batches(source, made_with), made_with)
    except (ConfigError, DataError) as error:
        return [*differences, str(error)]
    schema_differences = []
    difference = plan.schema.difference(StoreSchema.from_document(document["schema"]))
    if difference:
        schema_differences.append(f"{store}: {difference}, as the batch files have it")
    for split, count in plan.split_counts.items():
        stored = document["splits"].get(split, 0)
        if stored != count:
            schema_differences.append(
                f"{store}: split {split} has {stored} samples, but the batch files give {count}"
            )
    differences += schema_differences or _other_batches(store, document, plan)
    differences += _damaged_batches(plan, source, progress)
    return differences or list(_row_differences(store, plan))


def _file_differences(store: Path, document: dict[str, Any]) -> Iterator[str]:
    for item in document["files"]:
        path = store / item["name"]
        if not path.is_file():
            yield f"{path}: is missing; {_CURE}"
        elif path.stat().st_size != item["num_bytes"]:
            yield f"{path}: has {path.stat().st_size} bytes, not {item['num_bytes']}; {_CURE}"
        elif (crc := file_checksum(path)) != item["crc32"]:
            yield f"{path}: is damaged: its checksum is {crc:08x}, not {item['crc32']:08x}; {_CURE}"


def _other_batches(store: Path, document: dict[str, Any], plan: MergePlan) -> list[str]:
    """By what the headers say of all values; names the first file that is another."""
    batches, found = plan.batches, plan.batches.content_checksums
    made_of = document.get("batch_checksums")
    if made_of == found or (made_of is None and document["fingerprint"] == plan.fingerprint):
        return []
    if made_of is None or len(made_of) != len(found):
        return [f"{store}: was made of other batch files than those in {batches.folder}; {_MERGE_AGAIN}"]
    others = [batch for batch, checksum in enumerate(found) if checksum != made_of[batch]]
    more = f", and {len(others) - 1:,} more are" if len(others) > 1 else ""
    return [f"{batches.path(others[0])}: is another than {store} was made of{more}; {_MERGE_AGAIN}"]


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


def _row_differences(store: Path, plan: MergePlan) -> Iterator[str]:
    batches = plan.batches
    rows = np.arange(batches.total_samples)
    if len(rows) > SAMPLED_ROWS:
        keys = KeyStream("verify", plan.options.seed).of_rows(0, SAMPLED_ROWS)
        rows = np.unique(keys % np.uint64(len(rows))).astype(np.int64)
    batch_of = np.searchsorted(batches.first_rows[:-1], rows, side="right") - 1
    splits, positions = _positions(plan, rows, batch_of)
    expected: dict[str, dict[int, tuple[str, dict[str, Any]]]] = {name: {} for name in plan.splitter.names}
    for batch in np.unique(batch_of).tolist():
        path = batches.path(batch)
        arrays = load_batch(
            path, allow_pickle=bool(batches.is_pickled[batch]), mmap=True, schema=batches.schema
        )
        for index in np.flatnonzero(batch_of == batch).tolist():
            row = int(rows[index] - batches.first_rows[batch])
            values = {name: np.array(array[row : row + 1]) for name, array in arrays.items()}
            split = plan.splitter.names[splits[index]]
            expected[split][int(positions[index])] = f"sample {row} of {path.name}", values
    wrong: set[str] = set()
    for part in store_contents(store).parts:
        samples = expected[str(part.split)]
        for position, name, found in read_samples(part.blocks, sorted(samples)):
            origin, values = samples[position]
            if name in wrong or found.astype(values[name].dtype).tobytes() == values[name].tobytes():
                continue
            wrong.add(name)
            yield f"{store}: array '{name}' of {part.split} differs at sample {position} from {origin}"


def _positions(plan: MergePlan, rows: Numbers, batch_of: Numbers) -> tuple[Numbers, Numbers]:
    """The split of each of a few samples, by its number, and its position in that split."""
    splits, positions = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    for batch in np.unique(batch_of).tolist():
        numbers = plan.split_numbers(batch)
        for index in np.flatnonzero(batch_of == batch):
            row = int(rows[index] - plan.batches.first_rows[batch])
            splits[index] = numbers[row]
            before = np.count_nonzero(numbers[:row] == numbers[row])
            positions[index] = plan.starts[batch, numbers[row]] + before
    if not plan.options.shuffle:
        return splits, positions
    # In random order, the position of a sample is the number of samples of its split with lower keys.
    keys_of_rows = plan.order_keys.at_rows(rows)
    positions = np.zeros(len(rows), np.int64)
    for batch in range(len(plan.batches)):
        keys, numbers = plan.order_numbers(batch), plan.split_numbers(batch)
        for split in np.unique(splits):
            lower = np.sort(keys[numbers == split])
            positions += np.where(splits == split, np.searchsorted(lower, keys_of_rows), 0)
    return splits, positions
