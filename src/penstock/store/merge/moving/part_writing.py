"""Pass 2 for targets of many files: the samples of some batches, or of some buckets, in a file for each split."""

from pathlib import Path

import numpy as np

from penstock.store.merge.layouts.part_files import PartFiles
from penstock.store.merge.layouts.targets import PartChecksums
from penstock.store.merge.moving.buckets import KEY_BYTES, Buckets
from penstock.store.merge.moving.gathering import load_bucket
from penstock.store.merge.places.splitting import Numbers
from penstock.store.merge.plan import MergePlan
from penstock.store.merge.source.reading import BatchReader, Rows


def write_batches(plan: MergePlan, folder: Path, number: int, batches: range) -> PartChecksums:
    """The samples of some batches, in their order."""
    with PartFiles(folder, number, plan.schema, plan.options) as files:
        for batch in batches:
            numbers = plan.split_numbers(batch)
            with BatchReader(plan.batches, batch, keep_decoded=True) as reader:
                for first in range(0, reader.num_samples, files.group_rows):
                    count = min(files.group_rows, reader.num_samples - first)
                    columns = _columns(plan, reader, first, count)
                    _write_rows(files, plan.splitter.names, columns, numbers[first : first + count])
    return files.checksums


def _write_rows(files: PartFiles, names: tuple[str, ...], columns: dict[str, Rows], numbers: Numbers) -> None:
    for split, name in enumerate(names):
        chosen = np.flatnonzero(numbers == split)
        is_all = len(chosen) == len(numbers)
        found = columns if is_all else {array: rows[chosen] for array, rows in columns.items()}
        files.write(name, found, len(chosen))


def _columns(plan: MergePlan, reader: BatchReader, first: int, count: int) -> dict[str, Rows]:
    """Of all arrays; copies, since the reader has one buffer."""
    return {
        plan.batches.schema.arrays[column].name: reader.rows(column, first, count).copy()
        for column in plan.columns
    }


def write_buckets(
    plan: MergePlan, buckets: Buckets, folder: Path, number: int, chosen: range
) -> PartChecksums:
    """The samples of some buckets, in the order of their random numbers."""
    with PartFiles(folder, number, plan.schema, plan.options) as files:
        for bucket in chosen:
            _write_bucket(plan, buckets, folder, bucket, files)
    return files.checksums


def _write_bucket(plan: MergePlan, buckets: Buckets, folder: Path, bucket: int, files: PartFiles) -> None:
    records, order = load_bucket(folder, buckets, bucket)
    split = plan.splitter.names[buckets.split(bucket)]
    for first in range(0, len(order), files.group_rows):
        rows = records[order[first : first + files.group_rows]]
        files.write(split, _record_columns(plan, rows), len(rows))


def _record_columns(plan: MergePlan, records: Rows) -> dict[str, Rows]:
    columns, position = {}, KEY_BYTES
    for column in plan.columns:
        spec = plan.batches.schema.arrays[column]
        columns[spec.name] = records[:, position : position + spec.row_bytes]
        position += spec.row_bytes
    return columns
