"""From batch files to one store, in two passes and a few megabytes."""

import errno
import json
import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError
from penstock.prep.merge import staging
from penstock.prep.merge.batches import adding_cure, find_batches
from penstock.prep.merge.copy import (
    SCATTERED_NAME,
    Buckets,
    StretchWriter,
    copy_batches,
    gather,
    plan_buckets,
    scatter,
)
from penstock.prep.merge.layouts import Extents, Wrote, checksum_of, finish_archive, lay_out, reserve
from penstock.prep.merge.merge_options import MergeOptions, with_strategy
from penstock.prep.merge.plan import MergePlan, plan_merge, split_warnings
from penstock.readers.store_schema import (
    MANIFEST_NAME,
    STORE_KIND,
    STORE_VERSION,
    encoded_document,
    read_store,
)
from penstock.runtime.checksums import joined_checksum
from penstock.runtime.durable import PARTIAL_SUFFIX, sync_path, write_durably
from penstock.runtime.progress import ProgressLogger
from penstock.runtime.workers import Supervisor, WorkerPool, map_in_threads

MARKER_FOLDER = ".done"

_STAGING_VERSION = 2
"""Counts up when what a killed merge left cannot be continued."""
_COPYING_THREADS = 2
"""One takes checksums while the other waits for its files. A shuffle fills all its memory with one task at a time, and
what writes Parquet and Arrow files takes more memory in two threads, but no less time."""
_MAX_UNMARKED = 4
"""Tasks whose bytes may be on their way to the disk while the next runs; more would pile up in the page cache."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class MergeResult:
    output_dir: Path
    num_samples: dict[str, int]
    num_bytes: int
    num_batches: int
    num_tasks: int
    kept_tasks: int
    """What a killed merge had done before."""
    seconds: float
    was_whole: bool = False
    """Whether the same store was there already, so that nothing was written."""
    replaced: str | None = None
    """What was other in the store that was there before; None: there was none, or the same."""


def merge(
    intermediate_dir: str | Path,
    output_dir: str | Path,
    strategy: str = "sequential",
    *,
    options: MergeOptions | None = None,
    progress: ProgressLogger | None = None,
    replace: bool = True,
    restart: bool = False,
) -> MergeResult:
    """Make one store of all batch files of a folder; it is whole when its manifest.json is there.

    A killed merge is continued by the next one with the same files and options. `progress` counts samples. The same
    store is left as it is, by the sizes of its files; `restart` writes it again. Without `replace` a store that is
    another is refused.
    """
    began_at = time.monotonic()
    options = with_strategy(options or MergeOptions(), strategy)
    source, target = Path(intermediate_dir), Path(output_dir)
    if source.resolve() == target.resolve():
        raise ConfigError(f"{target}: output_dir is also intermediate_dir; choose another folder")
    with adding_cure(source):
        batches = find_batches(source, options)
        plan = plan_merge(batches, options)
        if progress is not None:
            progress.total = batches.total_samples
        for warning in split_warnings(batches, options.splits, plan.split_counts):
            logger.warning("%s", warning)
        before = staging.store_there(target)
        other = None if before is None else staging.difference(before, plan)
        if other is not None and not replace:
            raise ConfigError(
                f"{target}: holds a store with {other}; write over it with replace=True, or choose another output_dir"
            )
        is_whole = (
            bool(before) and other is None and not restart and staging.has_all_files(target, before or {})
        )
        num_tasks = kept_tasks = 0
        if is_whole:
            staging.remove_leftovers(target)
        else:
            num_tasks, kept_tasks = _merge_to(plan, target, restart, progress)
    return MergeResult(
        output_dir=target,
        num_samples=plan.split_counts,
        num_bytes=sum(item["num_bytes"] for item in read_store(target)["files"]),
        num_batches=len(batches),
        num_tasks=num_tasks,
        kept_tasks=kept_tasks,
        seconds=time.monotonic() - began_at,
        was_whole=is_whole,
        replaced=other,
    )


def _merge_to(
    plan: MergePlan, target: Path, restart: bool, progress: ProgressLogger | None
) -> tuple[int, int]:
    """Returns the number of tasks, and how many were done before."""
    buckets = plan_buckets(plan) if plan.options.shuffle else None
    name = f"{plan.fingerprint}-{plan.options.part_bytes}-{buckets.bits if buckets else 0}-{_STAGING_VERSION}"
    folder = staging.staging_folder(target, name)
    staging.check_space(target, plan.num_bytes + (buckets.num_bytes if buckets else 0), folder)
    phases = _plan_tasks(plan, buckets)
    num_tasks = sum(len(phase) for phase in phases)
    kept = num_tasks
    try:
        with staging.locked(target):
            staging.remove_others(target, None if restart else folder)
            staging.check_free(target, plan.file_names, folder)
            if not (folder / MANIFEST_NAME).exists():
                kept = _write_store(plan, folder, buckets, phases, progress)
            staging.publish(folder, target)
    except OSError as error:
        advice = "free some space" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "mend that"
        # What Arrow writes fails with a text of its own.
        reason = os.strerror(error.errno) if error.errno else error
        raise DataError(
            f"{target}: cannot be written: {reason}; no store appears there. Please {advice} and "
            "merge again: it goes on with what is done"
        ) from error
    return num_tasks, kept


@dataclass(frozen=True)
class MergeTask:
    """One piece of work: it can be done in any process, and again after a kill, with the same bytes."""

    number: int
    kind: str
    """copy, scatter or gather."""
    chosen: range
    """Batches to copy or scatter, buckets to gather."""
    num_samples: int
    """That come to their final offsets by it."""

    def __str__(self) -> str:
        return f"part {self.number} of the merge"


def _plan_tasks(plan: MergePlan, buckets: Buckets | None) -> list[list[MergeTask]]:
    """All tasks; those of a phase may run at once, and must be done before the next begins."""
    counts = plan.batches.num_samples
    if buckets is None:
        return [
            [
                MergeTask(number, "copy", part, int(counts[part.start : part.stop].sum()))
                for number, part in enumerate(plan.parts())
            ]
        ]
    scattered = [MergeTask(number, "scatter", part, 0) for number, part in enumerate(buckets.parts)]
    # Buckets of a part have the same first bits, however many there are.
    step = 1 << (buckets.bits - buckets.part_bits)
    parts = [range(first, first + step) for first in range(0, len(buckets.ends), step)]
    gathered = [
        MergeTask(number, "gather", part, buckets.bounds(part[-1])[1] - buckets.bounds(part[0])[0])
        for number, part in enumerate(parts, len(scattered))
    ]
    return [scattered, gathered]


def _run_task(
    plan: MergePlan,
    folder: Path,
    buckets: Buckets | None,
    extents: Extents,
    task: MergeTask,
    _send: Any = None,
) -> tuple[MergeTask, Wrote]:
    first_batch = 0 if buckets else task.chosen.start
    first_rows = dict(zip(plan.splitter.names, plan.starts[first_batch].tolist(), strict=True))
    if buckets is not None:
        if task.kind == "scatter":
            scatter(plan, buckets, folder, task.number)
            return task, {}
        split = plan.splitter.names[buckets.split(task.chosen[0])]
        first_rows[split] = buckets.first_row(task.chosen[0])
    if plan.options.has_part_files:
        from penstock.prep.merge.arrow_parts import PartFiles, copy_to_parts

        writer: Any = PartFiles(folder, task.number - (len(buckets.parts) if buckets else 0), plan)
        copy: Any = copy_to_parts
    else:
        writer, copy = StretchWriter(folder, extents, first_rows), copy_batches
    with writer:
        if buckets is not None:
            for bucket in task.chosen:
                gather(plan, buckets, folder, writer, bucket)
        else:
            copy(plan, writer, task.chosen)
    return task, writer.wrote


def _write_store(
    plan: MergePlan,
    folder: Path,
    buckets: Buckets | None,
    phases: Sequence[Sequence[MergeTask]],
    progress: ProgressLogger | None,
) -> int:
    """Do what is not done of a merge, and write the manifest; returns how many tasks were done before."""
    (folder / MARKER_FOLDER).mkdir(parents=True, exist_ok=True)
    done: dict[int, Wrote] = {
        int(path.stem): {
            (split, name): (num_bytes, crc) for split, name, num_bytes, crc in json.loads(path.read_bytes())
        }
        for path in sorted((folder / MARKER_FOLDER).glob("*.json"))
    }
    kept = len(done)
    extents = lay_out(plan.files, folder)
    if buckets is not None and kept < sum(len(phase) for phase in phases):
        reserve(folder / SCATTERED_NAME, buckets.num_bytes)
    _sync_folders(folder)  # so that no task is marked whose file might be gone after a power cut
    if progress is not None:
        progress.advance(sum(task.num_samples for phase in phases for task in phase if task.number in done))
    run = partial(_run_task, plan, folder, buckets, extents)
    unmarked: deque[Future[None]] = deque()
    with ThreadPoolExecutor(1, "penstock-merge-markers") as marking:
        for phase in phases:
            left = [task for task in phase if task.number not in done]
            for task, wrote in _run_tasks(run, left, plan.options):
                done[task.number] = wrote
                written = {extents[key].file if key in extents else key[1] for key in wrote}
                if task.kind == "scatter":
                    written = {SCATTERED_NAME}
                elif plan.options.has_part_files:
                    written |= {split for split, _ in wrote}  # folders with new files in them
                unmarked.append(marking.submit(_mark, folder, task.number, wrote, written))
                while len(unmarked) > _MAX_UNMARKED or (unmarked and unmarked[0].done()):
                    unmarked.popleft().result()
                if progress is not None:
                    progress.advance(task.num_samples)
        while unmarked:
            unmarked.popleft().result()
    (folder / SCATTERED_NAME).unlink(missing_ok=True)
    manifest = _finished_store(plan, folder, extents, done)
    _sync_folders(folder)
    _write_whole(folder / MANIFEST_NAME, manifest)
    return kept


class _MergeSupervisor(Supervisor[MergeTask]):
    memory_cure = "lower merge_workers, or raise memory.limit"
    other_cure = "merge again: it goes on with what is done"


def _run_tasks(
    run: Any, tasks: Sequence[MergeTask], options: MergeOptions
) -> Iterator[tuple[MergeTask, Wrote]]:
    num_processes = min(options.workers, len(tasks))
    if num_processes > 1:
        with WorkerPool(run, num_processes, _MergeSupervisor()) as pool:
            yield from (result for _, result in pool.run(tasks))
    elif tasks and tasks[0].kind == "copy" and not options.has_part_files:
        yield from map_in_threads(run, tasks, _COPYING_THREADS)
    else:
        yield from map(run, tasks)


def _mark(folder: Path, number: int, wrote: Wrote, files: set[str]) -> None:
    """First the bytes of a task go to disk, then its marker, so that a marker is never untrue."""
    for name in sorted(files):
        sync_path(folder / name)
    content = json.dumps([[*key, *stretch] for key, stretch in wrote.items()]).encode()
    _write_whole(folder / MARKER_FOLDER / f"{number:05d}.json", content)


def _write_whole(path: Path, content: bytes) -> None:
    partial_path = path.with_name(f"{path.name}{PARTIAL_SUFFIX}")
    write_durably(partial_path, content)
    partial_path.rename(path)


def _sync_folders(folder: Path) -> None:
    for path in (folder, *(path for path in folder.iterdir() if path.is_dir())):
        sync_path(path)


def _finished_store(plan: MergePlan, folder: Path, extents: Extents, done: dict[int, Wrote]) -> bytes:
    """Make the files of a store whole, of what all tasks wrote; returns its manifest."""
    in_order = [item for _, wrote in sorted(done.items()) for item in wrote.items()]
    checksums = dict.fromkeys(extents, 0)
    if plan.options.has_part_files:
        files = [
            {"name": name, "num_bytes": num_bytes, "crc32": crc} for (_, name), (num_bytes, crc) in in_order
        ]
    else:
        files = []
        for key, (num_bytes, crc) in in_order:
            checksums[key] = joined_checksum(checksums[key], crc, num_bytes)
    for file in plan.files:
        path = folder / file.name
        inside = [extent for extent in extents.values() if extent.file == file.name]
        if file.is_archive:
            finish_archive(path, inside, checksums)
        sync_path(path)
        crc = checksum_of(path, inside, checksums)
        files.append({"name": file.name, "num_bytes": path.stat().st_size, "crc32": crc})
    arrays = [
        {
            "split": split,
            "name": name,
            "file": extent.file,
            "member": extent.member,
            "offset": extent.offset,
            "dtype": extent.array.dtype.str,
            "shape": list(extent.array.shape(extent.num_rows)),
            "crc32": checksums[split, name],
        }
        for (split, name), extent in extents.items()
    ]
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
