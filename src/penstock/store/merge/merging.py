"""From batch files to one store, in two passes and a few megabytes."""

import errno
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from penstock.config.errors import ConfigError, DataError
from penstock.runtime.progress import ProgressLogger
from penstock.store.manifest import MANIFEST_NAME
from penstock.store.merge.document import read_store
from penstock.store.merge.moving.buckets import Buckets, plan_buckets
from penstock.store.merge.moving.tasks import Work
from penstock.store.merge.moving.writing import write_store
from penstock.store.merge.options import MergeOptions, check_strategy
from penstock.store.merge.places.split_warnings import split_warnings
from penstock.store.merge.plan import MergePlan, plan_merge
from penstock.store.merge.replacing import difference, has_all_files, store_there
from penstock.store.merge.room import check_room
from penstock.store.merge.source.batches import find_batches
from penstock.store.merge.source.curing import curing
from penstock.store.merge.staging import (
    check_free,
    locked,
    put_in_place,
    remove_leftovers,
    remove_others,
    staging_folder,
)

logger = logging.getLogger(__name__)


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
    """What was done before."""
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
    store is left as it is, by the sizes of its files; `restart` writes it anew. Without `replace` a store that is
    another is refused.
    """
    began_at = time.monotonic()
    options = options or MergeOptions()
    check_strategy(strategy, options)
    source, target = Path(intermediate_dir), Path(output_dir)
    if source.resolve() == target.resolve():
        raise ConfigError(f"{target}: output_dir is also intermediate_dir; choose another folder")
    with curing(source):
        batches, source_samples = find_batches(source, options.names, options.allow_pickle, options.types)
        plan = plan_merge(batches, options, source_samples)
        if progress is not None:
            progress.total = batches.total_samples
        for warning in split_warnings(plan):
            logger.warning("%s", warning)
        before = store_there(target)
        other = None if before is None else difference(before, plan)
        if other is not None and not replace:
            raise ConfigError(
                f"{target}: holds a store with {other}; write over it with replace=True, or choose another output_dir"
            )
        if before and other is None and not restart and has_all_files(target, before):
            remove_leftovers(target)
            return _result(plan, target, None, None, began_at)
        done = _merge_to(plan, target, strategy == "accumulative", restart, progress)
        return _result(plan, target, done, other, began_at)


class _Done(NamedTuple):
    """Pieces of work, and how many of them were done before."""

    num_tasks: int
    kept_tasks: int


def _result(
    plan: MergePlan, target: Path, done: _Done | None, replaced: str | None, began_at: float
) -> MergeResult:
    return MergeResult(
        output_dir=target,
        num_samples=plan.split_counts,
        num_bytes=sum(item["num_bytes"] for item in read_store(target)["files"]),
        num_batches=len(plan.batches),
        num_tasks=done.num_tasks if done else 0,
        kept_tasks=done.kept_tasks if done else 0,
        seconds=time.monotonic() - began_at,
        was_whole=done is None,
        replaced=replaced,
    )


def _merge_to(
    plan: MergePlan, target: Path, is_accumulative: bool, restart: bool, progress: ProgressLogger | None
) -> _Done:
    buckets = plan_buckets(plan) if plan.options.shuffle and not is_accumulative else None
    pieces = "all" if is_accumulative else f"{plan.options.part_bytes}-{buckets.bits if buckets else 0}"
    staging = staging_folder(target, f"{plan.fingerprint}-{pieces}")
    check_room(target, _needed_bytes(plan, buckets), staging)
    with _clear_errors(target), locked(target):
        remove_others(target, None if restart else staging)
        check_free(target, plan.file_names, staging)
        work = Work(plan, staging, buckets, is_accumulative)
        kept = work.num_tasks
        if not (staging / MANIFEST_NAME).exists():
            kept = write_store(work, progress)
        put_in_place(staging, target, plan.options.durable)
        return _Done(work.num_tasks, kept)


def _needed_bytes(plan: MergePlan, buckets: Buckets | None) -> int:
    return plan.num_bytes + (0 if buckets is None else buckets.num_bytes)


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
