"""Which data are trained on, and which held out: parts that are there already, whole files, or rows written apart."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from penstock.data.filter import PartOf
from penstock.readers.files import list_files
from penstock.readers.scan import BlockStream, ScannedFiles
from penstock.readers.stream import ROW_COLUMN
from penstock.readers.table_write import remove, write_output
from penstock.runtime.budget import Share

EVAL_PART = 0.1
_MIN_FILES = 10
_EVALUATION, _TEST = ("valid", "validation", "val", "dev", "eval"), ("test",)


@dataclass(frozen=True, slots=True)
class Parts:
    """Paths as a run file has them."""

    given: str
    train: str
    evaluation: str = ""
    test: str = ""
    """Rows that neither training nor the choice of an epoch sees, where there are such."""
    why: str = ""
    """Where the evaluation data come from."""


def find_parts(given: str) -> Parts:
    """The parts that stand in a folder, or beside a file, and are called train, valid and test."""
    path = Path(given)
    if path.is_dir():
        found = _named(path, ("train", "training"))
        if found is None:
            return Parts(given, given)
        return _beside(given, found)
    if path.is_file() and path.name.partition(".")[0] in ("train", "training"):
        return _beside(given, path)
    return Parts(given, given)


def _named(folder: Path, names: tuple[str, ...], suffix: str | None = None) -> Path | None:
    entries = sorted(folder.iterdir())
    for name in names:
        for entry in entries:
            if entry.name.partition(".")[0] == name and (suffix is None or entry.suffix == suffix):
                return entry
    return None


def _beside(given: str, train: Path) -> Parts:
    suffix = train.suffix if train.is_file() else None
    evaluation, test = _named(train.parent, _EVALUATION, suffix), _named(train.parent, _TEST, suffix)
    parts = Parts(given, str(train))
    if evaluation is not None:
        why = "the epoch is chosen on it" if test else "found beside the training data"
        return replace(parts, evaluation=str(evaluation), test=str(test or ""), why=why)
    if test is not None:
        return replace(
            parts, evaluation=str(test), why="there is no other; results on it are a little too good"
        )
    return parts


def hold_out(scanned: ScannedFiles, share: Share, parts: Parts, run_file: Path) -> Parts:
    """Where there are many files, the last of them; else a tenth of the rows, drawn by hash, in files of their own."""
    files = [file.path for file in list_files(parts.train, cure="")]
    if len(files) >= _MIN_FILES:
        count = round(EVAL_PART * len(files))
        train, evaluation = ",".join(files[:-count]), ",".join(files[-count:])
        return replace(
            parts, train=train, evaluation=evaluation, why=f"the last {count} of {len(files)} files"
        )
    folder = run_file.with_name(f"{run_file.stem}_data")
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, start, end in (("train", 0.0, 1 - EVAL_PART), ("valid", 1 - EVAL_PART, 1.0)):
        path = folder / f"{name}.parquet"
        remove(path)
        write_output(path, _part(scanned, share, PartOf(start, end, None, seed=0)), "--out")
        paths.append(os.fspath(path))
    why = f"one of ten rows, drawn by hash from {parts.given} and written apart"
    return replace(parts, train=paths[0], evaluation=paths[1], why=why)


def _part(scanned: ScannedFiles, share: Share, part: PartOf) -> Iterator[pa.RecordBatch]:
    stream = BlockStream(scanned, share)
    try:
        for batch in stream:
            rows = batch.filter(pa.array(part.mask(batch, ())))
            yield rows.drop_columns([ROW_COLUMN])
    finally:
        stream.close()
