"""What is in data, batch files, a store, a checkpoint or a run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import MIB, format_size
from penstock.config.syntax import SYNTAX_OF_SUFFIX
from penstock.observe.inspect_data import DataLook, Inspection, inspect_data, plain_value, short_value
from penstock.prep.contents import ArrayContents, Block, Contents, Extremes, Part, contents_of
from penstock.prep.profile import BlockPieces, choose_pieces
from penstock.readers.files import TYPE_OF_SUFFIX
from penstock.readers.order import Blocks
from penstock.readers.store_manifest import PREPARATION_NAME
from penstock.runtime.memory import memory_limit, tree_bytes
from penstock.runtime.progress import ProgressLogger
from penstock.training.model_dir import ModelDir

_PATIENCE_SECONDS = 5.0
_SHOWN_COLUMNS = 10
_BESIDE_BYTES = 16 * MIB
"""What looking at values takes beside the block that is read."""


@dataclass(frozen=True, slots=True)
class _PartLook:
    """The rows of a part that are looked at."""

    part: Part
    blocks: tuple[Block, ...]
    """Those with samples."""
    pieces: list[BlockPieces]

    @property
    def num_rows(self) -> int:
        """Rows that are looked at."""
        return sum(piece.num_rows for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class _Room:
    """What the process may hold, and what it held before it looked."""

    path: Path
    limit_bytes: int
    process_bytes: int

    @classmethod
    def of(cls, path: Path, look: DataLook) -> Self:
        """As it is now."""
        process_bytes = tree_bytes()
        return cls(path, memory_limit(look.memory_bytes, process_bytes), process_bytes)

    def check(self, block: Block) -> None:
        """Refuse a block that is too large."""
        needed_bytes = self.process_bytes + block.held_bytes + _BESIDE_BYTES
        if needed_bytes > self.limit_bytes:
            raise BudgetExceeded(
                f"{self.path}: looking at its values needs about {format_size(needed_bytes)} but may hold "
                f"{format_size(self.limit_bytes)}; raise --memory"
            )


def inspect_stored(path: Path, look: DataLook) -> Inspection | None:
    """Headers of all arrays and a look at their values; None where the path is neither batch files nor a store."""
    contents = contents_of(path)
    if contents is None:
        _refuse_begun(path)
        return None
    looks = [_choose(part, look.full) for part in contents.parts]
    with _progress(sum(chosen.num_rows for chosen in looks), look) as progress:
        room = _Room.of(path, look)
        seen = [_extremes(chosen, room, progress.advance) for chosen in looks]
    rows = [
        (chosen.part.split, array, found[array.name])
        for chosen, found in zip(looks, seen, strict=True)
        for array in chosen.part.arrays
    ]
    return Inspection(
        kind=contents.kind,
        facts=_facts(contents, looks),
        table_name="arrays",
        table=[_row(*row) for row in rows],
        shown_table=_shown(rows),
        notes=[*_column_notes(contents), *_notes(looks)],
        warnings=[*contents.warnings, *_nan_warnings(rows)],
    )


def _refuse_begun(path: Path) -> None:
    if (path / PREPARATION_NAME).exists():
        raise DataError(
            f"{path}: is a preparation without a batch file yet; run penstock prep, which goes on with it"
        )


def _choose(part: Part, full: bool) -> _PartLook:
    blocks = tuple(block for block in part.blocks if block.num_rows)
    places = Blocks.of((0, 0, block.num_rows) for block in blocks)
    return _PartLook(part, blocks, choose_pieces(places, max(1, part.row_bytes), full=full))


def _extremes(chosen: _PartLook, room: _Room, on_rows: Callable[[int], None]) -> dict[str, Extremes]:
    found = {array.name: Extremes() for array in chosen.part.arrays}
    for piece in chosen.pieces:
        block = chosen.blocks[piece.block]
        room.check(block)
        for name, values in block.chunks(piece.intervals):
            found[name].add(values)
        on_rows(piece.num_rows)
    return found


@contextmanager
def _progress(num_rows: int, look: DataLook) -> Iterator[ProgressLogger]:
    min_seconds = 1.0 if look.full else _PATIENCE_SECONDS
    with ProgressLogger(
        "inspecting", "rows", num_rows, plain=look.plain, min_seconds=min_seconds, show_end=look.full
    ) as progress:
        yield progress


def _facts(contents: Contents, looks: list[_PartLook]) -> dict[str, Any]:
    facts: dict[str, Any] = dict(contents.facts)
    facts["bytes_in_memory"] = sum(array.num_bytes for part in contents.parts for array in part.arrays)
    facts["heads"] = list(contents.heads)
    if contents.masked_heads != contents.heads:
        facts["heads_with_masks"] = list(contents.masked_heads)
    num_rows, num_seen = _counts(looks)
    if num_seen < num_rows:
        facts["rows_looked_at"] = num_seen
        facts["part_looked_at"] = num_seen / num_rows
    return facts


def _counts(looks: list[_PartLook]) -> tuple[int, int]:
    """Rows in all, and those that are looked at."""
    return sum(chosen.part.num_rows for chosen in looks), sum(chosen.num_rows for chosen in looks)


def _row(split: str | None, array: ArrayContents, found: Extremes) -> dict[str, Any]:
    return {
        **({} if split is None else {"split": split}),
        "array": array.name,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "bytes": array.num_bytes,
        "min": plain_value(_item(found.least)),
        "max": plain_value(_item(found.most)),
        "nan": found.num_nan,
        **({"columns": list(array.columns)} if array.columns else {}),
    }


def _shown(rows: list[tuple[str | None, ArrayContents, Extremes]]) -> list[dict[str, str]]:
    return [
        {
            **({} if split is None else {"split": split}),
            "array": array.name,
            "shape": " x ".join(f"{length:,}" for length in array.shape),
            "dtype": str(array.dtype),
            "bytes": format_size(array.num_bytes),
            "min": short_value(_item(found.least)),
            "max": short_value(_item(found.most)),
        }
        for split, array, found in rows
    ]


def _item(value: Any) -> Any:
    """A number as Python knows it; a time as its text, which no precision is too fine for."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def _column_notes(contents: Contents) -> list[str]:
    """Which columns arrays were made of; those of all splits are the same."""
    arrays = contents.parts[0].arrays if contents.parts else ()
    return [f"columns of {array.name}: {_first_columns(array.columns)}" for array in arrays if array.columns]


def _first_columns(columns: tuple[str, ...]) -> str:
    more = len(columns) - _SHOWN_COLUMNS
    return ", ".join(columns[:_SHOWN_COLUMNS]) + (f" and {more:,} more; --json tells all" if more > 0 else "")


def _notes(looks: list[_PartLook]) -> list[str]:
    num_rows, num_seen = _counts(looks)
    if num_seen == num_rows:
        return []
    num_places = sum(len(piece.intervals) for chosen in looks for piece in chosen.pieces)
    return [f"min and max from rows at {num_places} places; --full looks at all rows"]


def _nan_warnings(rows: list[tuple[str | None, ArrayContents, Extremes]]) -> list[str]:
    return [
        f"{array.name}{'' if split is None else f' of {split}'}: {found.num_nan:,} NaN among the values looked at; "
        "left out of min and max"
        for split, array, found in rows
        if found.num_nan
    ]


def inspect_checkpoint(path: Path) -> Inspection:
    """What a checkpoint holds, after its checksums were verified."""
    checkpoint = CheckpointStore(path.parent).open(path)
    table = [
        {"tensor": name, "shape": list(info.shape), "type": info.dtype}
        for name, info in sorted(checkpoint.tensors.items())
    ]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    facts = {"step": checkpoint.step, "bytes_on_disk": size, "checksums": "right"}
    return Inspection("checkpoint", facts, "tensors", table)


def inspect_run(path: Path) -> Inspection:
    """How far a run is, and how good."""
    folder = ModelDir(path)
    store = CheckpointStore(folder.checkpoints)
    logged = folder.log.read()
    facts = {
        "steps_logged": max((record["step"] for record in logged if "step" in record), default=0),
        "checkpoints": ", ".join(f"step-{step}" for step in store.steps()) or "none",
    }
    table = [
        {"step": record["step"], "epoch": record["epoch"], **record["metrics"]}
        for record in folder.evaluations.read()
    ]
    return Inspection("run", facts, "evaluations", table)


__all__ = ["DataLook", "Inspection", "inspect", "inspect_data"]

RUN_FILE_SUFFIXES = frozenset(SYNTAX_OF_SUFFIX) - frozenset(TYPE_OF_SUFFIX)


def inspect(path: str | Path, look: DataLook | None = None) -> Inspection:
    """Look at a path and tell what it is; `look` says how to look at data, and with a dataset type that it is data."""
    place = Path(path)
    if (place / "manifest.json").exists() and place.name.startswith("step-"):
        return inspect_checkpoint(place)
    if (place / "run.yaml").exists():
        return inspect_run(place)
    if place.is_file() and place.suffix in RUN_FILE_SUFFIXES:
        raise DataError(f"{path}: is a run file, not data; look at it with penstock check")
    look = look or DataLook()
    stored = None if look.reading.get("dataset_type") else inspect_stored(place, look)
    return stored or inspect_data(str(path), look)
