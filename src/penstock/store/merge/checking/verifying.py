"""Whether a store is what its manifest says, what the batch files hold, and what was asked for. Nothing is written."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError
from penstock.runtime.progress import ProgressLogger
from penstock.store.checksums import file_checksum
from penstock.store.manifest import MANIFEST_NAME, check_finished
from penstock.store.merge.checking.sampled_rows import row_differences
from penstock.store.merge.document import batch_checksums, options_of, read_store
from penstock.store.merge.options import MergeOptions
from penstock.store.merge.plan import MergePlan, plan_merge
from penstock.store.merge.replacing import other_options
from penstock.store.merge.source.batches import find_batches
from penstock.store.merge.source.curing import curing
from penstock.store.merge.source.reading import BatchReader
from penstock.store.merge.staging import check_ended, check_free
from penstock.store.schema import StoreSchema

_CURE = "penstock merge --restart writes the store anew"
_MERGE_AGAIN = "penstock merge makes it of these"


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
        _check_merged(store, source, options, allow_pickle)
        document = read_store(store)
    except (ConfigError, DataError) as error:
        return [str(error)]
    differences = [*_file_differences(store, document), *_option_differences(store, document, options)]
    try:
        with curing(source):
            made_with = options_of(document)
            batches, source_samples = find_batches(source, made_with.names, allow_pickle, made_with.types)
            plan = plan_merge(batches, made_with, source_samples)
    except (ConfigError, DataError) as error:
        return [*differences, str(error)]
    differences += list(_schema_differences(store, document, plan)) or _other_batches(store, document, plan)
    differences += _damaged_batches(plan, source, progress)
    return differences or list(row_differences(store, document, plan))


def _check_merged(store: Path, source: Path, options: MergeOptions | None, allow_pickle: bool) -> None:
    """Where no merge has finished, refuse what a merge would refuse too: it is no advice then."""
    if (store / MANIFEST_NAME).exists():
        return
    check_finished(source)
    check_ended(store)
    wanted = options or MergeOptions()
    with curing(source):
        batches, source_samples = find_batches(source, wanted.names, allow_pickle, wanted.types)
        check_free(store, plan_merge(batches, wanted, source_samples).file_names)


def _file_differences(store: Path, document: dict[str, Any]) -> Iterator[str]:
    for item in document["files"]:
        path = store / item["name"]
        if not path.is_file():
            yield f"{path}: is missing; {_CURE}"
        elif path.stat().st_size != item["num_bytes"]:
            yield f"{path}: has {path.stat().st_size} bytes, not {item['num_bytes']}; {_CURE}"
        elif (crc := file_checksum(path)) != item["crc32"]:
            yield f"{path}: is damaged: its checksum is {crc:08x}, not {item['crc32']:08x}; {_CURE}"


def _option_differences(store: Path, document: dict[str, Any], options: MergeOptions | None) -> Iterator[str]:
    if options is None:
        return
    for name, (found, wanted) in other_options(document, options).items():
        yield f"{store}: was merged with {name} {json.dumps(found)}, not {json.dumps(wanted)}"


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
    paths, found = plan.batches.paths, batch_checksums(plan.batches)
    made_of = document.get("batch_checksums")
    if made_of == found or (made_of is None and document["fingerprint"] == plan.fingerprint):
        return []
    if made_of is None or len(made_of) != len(found):
        return [f"{store}: was made of other batch files than those in {paths[0].parent}; {_MERGE_AGAIN}"]
    others = [batch for batch, checksum in enumerate(found) if checksum != made_of[batch]]
    more = f", and {len(others) - 1:,} more are" if len(others) > 1 else ""
    return [f"{paths[others[0]]}: is another than {store} was made of{more}; {_MERGE_AGAIN}"]


def _damaged_batches(plan: MergePlan, source: Path, progress: ProgressLogger | None) -> Iterator[str]:
    """Read every value of every batch file, some at a time; samples of old were read when they were found."""
    batches = plan.batches
    if progress is not None:
        progress.total = batches.total_samples
    for batch, num_samples in enumerate(batches.num_samples.tolist()):
        if not batches.is_pickled[batch]:
            try:
                with curing(source), BatchReader(batches, batch) as reader:
                    reader.read_all()
            except DataError as error:
                yield str(error)
        if progress is not None:
            progress.advance(num_samples)
