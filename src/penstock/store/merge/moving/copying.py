"""Pass 2 without a shuffle: the samples of some batch files go to where they belong."""

from pathlib import Path

import numpy as np

from penstock.store.merge.layouts.store_file import Place
from penstock.store.merge.layouts.targets import PartChecksums, Targets
from penstock.store.merge.places.splitting import Numbers
from penstock.store.merge.plan import MergePlan
from penstock.store.merge.source.reading import BatchReader


def copy_batches(plan: MergePlan, folder: Path, batches: range) -> PartChecksums:
    """Write all samples of some batches; holds a buffer, and one array where it must be decoded."""
    with Targets(folder) as targets:
        for batch in batches:
            numbers = plan.splitter.numbers(batch)
            with BatchReader(plan.batches, batch) as reader:
                for column in plan.columns:
                    if isinstance(numbers, int):
                        _copy_whole(reader, column, *_target(plan, batch, numbers, column), targets)
                    else:
                        _copy_split(plan, reader, column, batch, numbers, targets)
    return targets.checksums


def _copy_whole(reader: BatchReader, column: int, place: Place, first_row: int, targets: Targets) -> None:
    """All samples go to the same split: its bytes are those of the file."""
    first = position = place.offset + first_row * place.array.row_bytes
    for piece in reader.pieces(column):
        targets.write_bytes(place.file, piece, position)
        position += len(piece)
    targets.add(place, reader.checksum(column), position - first)


def _copy_split(
    plan: MergePlan, reader: BatchReader, column: int, batch: int, numbers: Numbers, targets: Targets
) -> None:
    """Samples go to several splits, and behind each other in each of them."""
    step = reader.chunk_rows(column)
    ends = [_target(plan, batch, split, column) for split in range(len(plan.splitter.names))]
    for first in range(0, reader.num_samples, step):
        rows = reader.rows(column, first, min(step, reader.num_samples - first))
        for split, (place, first_row) in enumerate(ends):
            chosen = rows[np.flatnonzero(numbers[first : first + len(rows)] == split)]
            targets.write(place, first_row, chosen)
            ends[split] = place, first_row + len(chosen)


def _target(plan: MergePlan, batch: int, split: int, column: int) -> tuple[Place, int]:
    name = plan.batches.schema.arrays[column].name
    return plan.places[plan.splitter.names[split], name], int(plan.starts[batch, split])
