"""What is in data, batch files, a store, a checkpoint or a run."""

from pathlib import Path
from typing import Any

import numpy as np

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import MIB, format_size
from penstock.config.syntax import SYNTAX_OF_SUFFIX
from penstock.observe.inspect_data import DataLook, Inspection, inspect_data, plain_value, shown_value
from penstock.prep.contents import ArrayContents, Contents, Extremes, contents_of
from penstock.prep.profile import choose_pieces
from penstock.readers.files import TYPE_OF_SUFFIX
from penstock.readers.order import Blocks
from penstock.readers.store_schema import PREPARATION_NAME
from penstock.runtime.memory import memory_limit, tree_bytes
from penstock.training.model_dir import ModelDir

_SHOWN_COLUMNS = 10
_BESIDE_BYTES = 16 * MIB
"""What looking at values takes beside the block that is read."""
RUN_FILE_SUFFIXES = frozenset(SYNTAX_OF_SUFFIX) - frozenset(TYPE_OF_SUFFIX)


def inspect(path: str | Path, look: DataLook | None = None) -> Inspection:
    """Look at a path and say what it is; `look` is how to look at data, and with a dataset type that it is data."""
    where, look = Path(path), look or DataLook()
    if (where / "manifest.json").exists() and where.name.startswith("step-"):
        return inspect_checkpoint(where)
    if (where / "run.yaml").exists():
        return inspect_run(where)
    if where.is_file() and where.suffix in RUN_FILE_SUFFIXES:
        raise DataError(f"{path}: is a run file, not data; look at it with penstock check")
    contents = None if look.reading.get("dataset_type") else contents_of(where)
    if contents is not None:
        return inspect_stored(where, contents, look)
    if (where / PREPARATION_NAME).exists():
        raise DataError(
            f"{path}: is a preparation without a batch file yet; run penstock prep, which goes on with it"
        )
    return inspect_data(str(path), look)


def inspect_stored(path: Path, contents: Contents, look: DataLook) -> Inspection:
    looks = []
    for part in contents.parts:
        blocks = [block for block in part.blocks if block.num_rows]
        rows_of_blocks = Blocks.of((0, 0, block.num_rows) for block in blocks)
        looks.append((part, blocks, choose_pieces(rows_of_blocks, max(1, part.row_bytes), full=look.full)))
    num_rows = sum(part.num_rows for part in contents.parts)
    num_seen = sum(piece.num_rows for _, _, pieces in looks for piece in pieces)
    found: list[tuple[str | None, ArrayContents, Extremes]] = []
    with look.progress(num_seen) as progress:
        process_bytes = tree_bytes()
        limit_bytes = memory_limit(look.memory_bytes, process_bytes)
        for part, blocks, pieces in looks:
            extremes = {array.name: Extremes() for array in part.arrays}
            for piece in pieces:
                block = blocks[piece.block]
                needed_bytes = process_bytes + block.held_bytes + _BESIDE_BYTES
                if needed_bytes > limit_bytes:
                    raise BudgetExceeded(
                        f"{path}: looking at its values needs about {format_size(needed_bytes)} but may hold "
                        f"{format_size(limit_bytes)}; raise --memory"
                    )
                for name, values in block.chunks(piece.intervals):
                    extremes[name].add(values)
                progress.advance(piece.num_rows)
            found += [(part.split, array, extremes[array.name]) for array in part.arrays]
    facts: dict[str, Any] = dict(contents.facts)
    facts["bytes_in_memory"] = sum(array.num_bytes for _, array, _ in found)
    facts["heads"] = list(contents.heads)
    if contents.masked_heads != contents.heads:
        facts["heads_with_masks"] = list(contents.masked_heads)
    notes = []
    for array in contents.parts[0].arrays if contents.parts else ():  # those of all splits are the same
        if array.columns:
            more = len(array.columns) - _SHOWN_COLUMNS
            rest = f" and {more:,} more; --json tells all" if more > 0 else ""
            notes.append(f"columns of {array.name}: {', '.join(array.columns[:_SHOWN_COLUMNS])}{rest}")
    if num_seen < num_rows:
        facts["rows_looked_at"] = num_seen
        facts["part_looked_at"] = num_seen / num_rows
        num_intervals = sum(len(piece.intervals) for _, _, pieces in looks for piece in pieces)
        notes.append(f"min and max from rows at {num_intervals} places; --full looks at all rows")
    nan_warnings = [
        f"{array.name}{'' if split is None else f' of {split}'}: {extremes.num_nan:,} NaN among the values looked at; "
        "left out of min and max"
        for split, array, extremes in found
        if extremes.num_nan
    ]
    rows = [_array_rows(*each) for each in found]
    return Inspection(
        kind=contents.kind,
        facts=facts,
        table_name="arrays",
        table=[row for row, _ in rows],
        shown_table=[shown for _, shown in rows],
        notes=notes,
        warnings=[*contents.warnings, *nan_warnings],
    )


def _array_rows(
    split: str | None, array: ArrayContents, found: Extremes
) -> tuple[dict[str, Any], dict[str, str]]:
    """An array as a row for JSON, and as people read it."""
    least, most = _item(found.least), _item(found.most)
    head = {**({} if split is None else {"split": split}), "array": array.name}
    row = {
        **head,
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "bytes": array.num_bytes,
        "min": plain_value(least),
        "max": plain_value(most),
        "nan": found.num_nan,
        **({"columns": list(array.columns)} if array.columns else {}),
    }
    shown = {
        **head,
        "shape": " x ".join(f"{length:,}" for length in array.shape),
        "dtype": str(array.dtype),
        "bytes": format_size(array.num_bytes),
        "min": shown_value(least),
        "max": shown_value(most),
    }
    return row, shown


def _item(value: Any) -> Any:
    """A number as Python knows it; a time as its text, which no precision is too fine for."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    return value.item() if isinstance(value, np.generic) else value


def inspect_checkpoint(path: Path) -> Inspection:
    checkpoint = CheckpointStore(path.parent).open(path)
    table = [
        {"tensor": name, "shape": list(info.shape), "type": info.dtype}
        for name, info in sorted(checkpoint.tensors.items())
    ]
    size = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    facts = {"step": checkpoint.step, "bytes_on_disk": size, "checksums": "right"}
    return Inspection("checkpoint", facts, "tensors", table)


def inspect_run(path: Path) -> Inspection:
    folder = ModelDir(path)
    logged, steps = folder.log.read(), CheckpointStore(folder.checkpoints).steps()
    facts = {
        "steps_logged": max((record["step"] for record in logged if "step" in record), default=0),
        "checkpoints": ", ".join(f"step-{step}" for step in steps) or "none",
    }
    table = [
        {"step": record["step"], "epoch": record["epoch"], **record["metrics"]}
        for record in folder.evaluations.read()
    ]
    return Inspection("run", facts, "evaluations", table)
