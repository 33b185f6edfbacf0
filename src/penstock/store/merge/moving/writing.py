"""Pass 2: the files of a store in the folder where it grows. Values come first, then headers, the manifest last."""

from pathlib import Path

from penstock.runtime.durable import flush_to_disk, sync_path, write_durably
from penstock.runtime.progress import ProgressLogger
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.document import encoded_store, whole_checksums
from penstock.store.merge.layouts.store_file import Checksums, Fixed
from penstock.store.merge.layouts.targets import PartChecksums, write_at
from penstock.store.merge.moving.buckets import SCATTERED_NAME
from penstock.store.merge.moving.crew import Crew
from penstock.store.merge.moving.journal import PartJournal
from penstock.store.merge.moving.tasks import Work
from penstock.store.merge.plan import MergePlan
from penstock.store.merge.room import reserve


def write_store(work: Work, progress: ProgressLogger | None) -> int:
    """Do what is not done of a merge, and write the manifest; gives how many tasks were done before."""
    work.folder.mkdir(exist_ok=True)
    for file in work.plan.files:
        reserve(work.folder / file.name, file.num_bytes)
    if work.buckets is not None:
        reserve(work.folder / SCATTERED_NAME, work.buckets.num_bytes)
    if work.plan.options.durable:
        _sync_folders(work.folder)  # so that no part is noted whose file might be gone after a power cut
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
        _sync_folders(staging)
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


def _sync_folders(staging: Path) -> None:
    """Wait until the names of all files are on disk."""
    for folder in (staging, *(path for path in staging.iterdir() if path.is_dir())):
        sync_path(folder)
