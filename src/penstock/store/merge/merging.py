"""From batch files to one store, in two passes and a few megabytes."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import ConfigError, DataError
from penstock.runtime.durable import flush_to_disk, sync_path, write_durably
from penstock.runtime.progress import ProgressLogger
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.batches import find_batches
from penstock.store.merge.buckets import SCATTERED_NAME, Buckets, plan_buckets
from penstock.store.merge.crew import Crew
from penstock.store.merge.document import encoded_store, read_store, whole_checksums
from penstock.store.merge.journal import PartJournal
from penstock.store.merge.layout import Checksums, Fixed
from penstock.store.merge.options import MergeOptions, check_strategy
from penstock.store.merge.plan import MergePlan, plan_merge
from penstock.store.merge.room import check_room, reserve
from penstock.store.merge.staging import check_free, locked, put_in_place, remove_others, staging_folder
from penstock.store.merge.targets import PartChecksums, write_at
from penstock.store.merge.tasks import Work


@dataclass(frozen=True)
class MergeResult:
    """What a merge made."""

    output_dir: Path
    num_samples: dict[str, int]
    """In each split."""
    num_bytes: int
    num_batches: int
    num_tasks: int
    """Pieces of work; what a killed merge has done of them is kept."""
    kept_tasks: int
    """What was done before; all, where the store was whole already."""


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
    check_strategy(strategy, options)
    source, target = Path(intermediate_dir), Path(output_dir)
    if source.resolve() == target.resolve():
        raise ConfigError(f"{target}: output_dir is also intermediate_dir; choose another folder")
    batches, source_samples = find_batches(source, options.names, options.allow_pickle)
    plan = plan_merge(batches, options, source_samples)
    if progress is not None:
        progress.total = batches.total_samples
    if _is_whole(plan, target):
        return _result(plan, target, 0, 0)
    return _merge_to(plan, target, strategy == "accumulative", progress)


def _merge_to(
    plan: MergePlan, target: Path, is_accumulative: bool, progress: ProgressLogger | None
) -> MergeResult:
    buckets = plan_buckets(plan) if plan.options.shuffle and not is_accumulative else None
    pieces = "all" if is_accumulative else f"{plan.options.part_bytes}-{buckets.bits if buckets else 0}"
    staging = staging_folder(target, f"{plan.fingerprint}-{pieces}")
    check_room(target, _needed_bytes(plan, buckets), staging)
    with _clear_errors(target), locked(target):
        remove_others(target, staging)
        names = plan.splitter.names if plan.options.has_part_files else [file.name for file in plan.files]
        check_free(target, names, staging)
        work = Work(plan, staging, buckets, is_accumulative)
        kept = work.num_tasks
        if not (staging / MANIFEST_NAME).exists():
            kept = _write(work, progress)
        put_in_place(staging, target, plan.options.durable)
        return _result(plan, target, work.num_tasks, kept)


def _write(work: Work, progress: ProgressLogger | None) -> int:
    """Write all files of a store; gives how many tasks were done before."""
    work.folder.mkdir(exist_ok=True)
    for file in work.plan.files:
        reserve(work.folder / file.name, file.num_bytes)
    if work.buckets is not None:
        reserve(work.folder / SCATTERED_NAME, work.buckets.num_bytes)
    with PartJournal(work.folder, work.plan.options.durable) as journal:
        done = journal.read()
        kept = len(done)
        _run(work, done, journal, progress)
    _finish(work.plan, work.folder, done)
    return kept


def _run(
    work: Work, done: dict[int, PartChecksums], journal: PartJournal, progress: ProgressLogger | None
) -> None:
    """Do all tasks that are not done, and add them to `done`."""
    if progress is not None:
        progress.advance(
            sum(task.num_samples for phase in work.phases for task in phase if task.number in done)
        )
    with Crew(work) as crew:
        for phase in work.phases:
            for task, checksums in crew.run([task for task in phase if task.number not in done]):
                done[task.number] = checksums
                journal.note(task.number, checksums, work.files_of(task, checksums))
                if progress is not None:
                    progress.advance(task.num_samples)


def _finish(plan: MergePlan, staging: Path, done: dict[int, PartChecksums]) -> None:
    """Write headers, which need the checksums of all parts, and the manifest when all is on disk."""
    if plan.files:
        _write_headers(plan, staging, whole_checksums(plan, done))
    partial, manifest = staging / f"{MANIFEST_NAME}.partial", encoded_store(plan, done)
    if plan.options.durable:
        for folder in (staging, *(path for path in staging.iterdir() if path.is_dir())):
            sync_path(folder)
        write_durably(partial, manifest)
    else:
        partial.write_bytes(manifest)
    partial.rename(staging / MANIFEST_NAME)


def _write_headers(plan: MergePlan, staging: Path, checksums: Checksums) -> None:
    for file in plan.files:
        with (staging / file.name).open("r+b", buffering=0) as stream:
            for piece in file.pieces(checksums):
                if isinstance(piece, Fixed):
                    write_at(stream.fileno(), memoryview(piece.content), piece.offset)
            if plan.options.durable:
                flush_to_disk(stream)


def _needed_bytes(plan: MergePlan, buckets: Buckets | None) -> int:
    return plan.num_bytes + (0 if buckets is None else buckets.num_bytes)


def _is_whole(plan: MergePlan, target: Path) -> bool:
    """Whether the store is there already, of the same inputs and with the same options."""
    if not (target / MANIFEST_NAME).exists():
        return False
    try:
        document = read_store(target)
    except DataError as error:
        raise ConfigError(f"{error}; to merge here, take it away") from error
    paths = [(target / item["name"], item["num_bytes"]) for item in document["files"]]
    return document["fingerprint"] == plan.fingerprint and all(
        path.is_file() and path.stat().st_size == num_bytes for path, num_bytes in paths
    )


def _result(plan: MergePlan, target: Path, num_tasks: int, kept: int) -> MergeResult:
    num_bytes = sum(item["num_bytes"] for item in read_store(target)["files"])
    return MergeResult(target, plan.split_counts, num_bytes, len(plan.batches), num_tasks, kept)


@contextmanager
def _clear_errors(output_dir: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        advice = "free some room" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "mend that"
        raise DataError(
            f"{output_dir}: cannot be written: {error.strerror or error}; no store appears there. Please {advice} and "
            "merge again: it goes on with what is done"
        ) from error
