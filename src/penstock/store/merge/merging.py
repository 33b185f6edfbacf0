"""From batch files to one store, in two passes and a few megabytes."""

import errno
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import ConfigError, DataError
from penstock.runtime.durable import flush_to_disk, sync_directory, write_durably
from penstock.runtime.progress import ProgressLogger
from penstock.store.merge.batches import list_batch_files, read_batches
from penstock.store.merge.copying import PartChecksums, PartCopier, joined, write_at
from penstock.store.merge.document import store_document
from penstock.store.merge.journal import PartJournal
from penstock.store.merge.layout import Checksums, Fixed, total_bytes
from penstock.store.merge.options import MergeOptions, check_strategy
from penstock.store.merge.plan import MergePlan, plan_merge
from penstock.store.merge.room import check_room, reserve
from penstock.store.merge.staging import (
    MANIFEST_NAME,
    check_free,
    locked,
    put_in_place,
    remove_others,
    staging_folder,
)


@dataclass(frozen=True)
class MergeResult:
    """What a merge made."""

    output_dir: Path
    num_samples: dict[str, int]
    """In each split."""
    num_bytes: int
    num_batches: int
    kept_parts: int
    """What a killed merge had done before, and was not done again."""
    num_parts: int


def merge(
    intermediate_dir: str | Path,
    output_dir: str | Path,
    strategy: str = "sequential",
    *,
    options: MergeOptions | None = None,
    progress: ProgressLogger | None = None,
) -> MergeResult:
    """Make one store of all batch files of a folder; it is whole when its manifest.json is there.

    A killed merge is continued by the next one with the same files and options. `progress` counts samples.
    """
    options = options or MergeOptions()
    check_strategy(strategy)
    source, target = Path(intermediate_dir), Path(output_dir)
    if source.resolve() == target.resolve():
        raise ConfigError(f"{target}: output_dir is also intermediate_dir; choose another folder")
    plan = plan_merge(read_batches(list_batch_files(source), options.names), options)
    staging = staging_folder(target, plan.fingerprint)
    check_room(target, total_bytes(plan.files), staging)
    with _clear_errors(target), locked(target):
        remove_others(target, staging)
        check_free(target, [file.name for file in plan.files], staging)
        return _merge(plan, staging, target, progress)


def _merge(plan: MergePlan, staging: Path, target: Path, progress: ProgressLogger | None) -> MergeResult:
    parts = list(plan.parts())
    kept = len(parts)
    if not (staging / MANIFEST_NAME).exists():
        for file in plan.files:
            reserve(staging / file.name, file.num_bytes)
        with PartJournal(staging, plan.options.durable) as journal:
            done = journal.read()
            kept = len(done)
            _copy_parts(plan, staging, parts, done, journal, progress)
        _finish(plan, staging, done)
    put_in_place(staging, target)
    return MergeResult(
        target, plan.split_counts, total_bytes(plan.files), len(plan.batches), kept, len(parts)
    )


def _copy_parts(
    plan: MergePlan,
    staging: Path,
    parts: list[range],
    done: dict[int, PartChecksums],
    journal: PartJournal,
    progress: ProgressLogger | None,
) -> None:
    """Copy what is not done, and add it to `done`."""
    copier = PartCopier(plan, staging)
    for number, part in enumerate(parts):
        if number not in done:
            done[number] = copier.copy(part)
            journal.note(number, done[number], {plan.places[key].file for key in done[number]})
        if progress is not None:
            progress.advance(int(plan.batches.num_samples[part.start : part.stop].sum()))


def _finish(plan: MergePlan, staging: Path, done: dict[int, PartChecksums]) -> None:
    """Write headers, which need the checksums of all parts, and the manifest when all is on disk."""
    checksums = _whole_checksums(plan, done)
    for file in plan.files:
        with (staging / file.name).open("r+b", buffering=0) as stream:
            for piece in file.pieces(checksums):
                if isinstance(piece, Fixed):
                    write_at(stream.fileno(), memoryview(piece.content), piece.offset)
            if plan.options.durable:
                flush_to_disk(stream)
    document = json.dumps(store_document(plan, checksums), indent=1)
    sync_directory(staging)
    partial = staging / f"{MANIFEST_NAME}.partial"
    write_durably(partial, document.encode())
    partial.rename(staging / MANIFEST_NAME)


def _whole_checksums(plan: MergePlan, done: dict[int, PartChecksums]) -> Checksums:
    """Of all values of each place: those of the parts, in order, behind each other."""
    sums = dict.fromkeys(plan.places, (0, 0))
    for _, checksums in sorted(done.items()):
        for key, later in checksums.items():
            sums[key] = joined(sums[key], later)
    return {key: crc for key, (crc, _) in sums.items()}


@contextmanager
def _clear_errors(output_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "free some room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "mend it"
        raise DataError(
            f"{output_dir}: cannot be written: {error.strerror or error}; no store appears there. {advice} and merge "
            "again: it goes on with what is done"
        ) from error
