"""What is in data files of any format, batch files, a store, a checkpoint, a run or a folder of runs."""

import textwrap
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import BudgetExceeded, DataError
from penstock.config.sizes import MIB, format_size
from penstock.config.syntax import SYNTAX_OF_SUFFIX
from penstock.observe.advice import ROW_FORMATS
from penstock.observe.data_profile import column_table, plain_value, shown_columns, shown_value
from penstock.observe.report.run_record import model_name, read_run
from penstock.observe.summary import number
from penstock.prep.contents import ArrayContents, Contents, Extremes, contents_of
from penstock.prep.data_advice import Storage, advise
from penstock.prep.profile import STANDARD_ERROR, DataProfile, add_footers, choose_pieces, profile_pieces
from penstock.readers.csv import reading_of
from penstock.readers.files import TYPE_OF_SUFFIX, list_files
from penstock.readers.order import Blocks
from penstock.readers.scan import ReadRequest, ScannedFiles, dataset_type_of, scan_files
from penstock.readers.store_schema import PREPARATION_NAME
from penstock.runtime.budget import Share
from penstock.runtime.memory import memory_limit, tree_bytes
from penstock.runtime.progress import ProgressLogger
from penstock.training.best import BestMetric, best_step
from penstock.training.model_dir import ModelDir

KINDS = {
    "ParquetDataset": "Parquet files",
    "CsvDataset": "CSV files",
    "ArrowDataset": "Arrow files",
    "JsonDataset": "JSON lines",
    "TFRecordDataset": "TFRecord files",
    "NumpyDataset": "NumPy arrays",
}
_BAR_AFTER_SECONDS = 5.0
"""A look at some rows is mostly over before one could read a bar."""
_SKETCH_BYTES = 48 * MIB
"""What looking at rows takes beside the reader."""
_MIN_WIDTH = 12
"""Characters that a column of the text table keeps."""
_SHOWN_COLUMNS = 10
_SHOWN_VALUES = 2
"""Of evaluations, before what else there is to say of a run."""
_BESIDE_BYTES = 16 * MIB
"""What looking at values takes beside the block that is read."""
RUN_FILE_SUFFIXES = frozenset(SYNTAX_OF_SUFFIX) - frozenset(TYPE_OF_SUFFIX)


@dataclass(slots=True)
class Inspection:
    kind: str
    facts: dict[str, Any]
    table_name: str = ""
    table: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """How to read the numbers."""
    shown_table: list[dict[str, str]] | None = None
    """The table as people read it, where that is not the table itself."""

    def as_dict(self) -> dict[str, Any]:
        named = {self.table_name: self.table} if self.table_name else {}
        notes = {"notes": self.notes} if self.notes else {}
        return {"kind": self.kind, **self.facts, **named, **notes, "warnings": self.warnings}

    def as_text(self, width: int | None = None) -> str:
        """Everything, for a person, in lines of at most `width` characters where that is possible."""
        lines = [self.kind]
        lines += [f"  {name.replace('_', ' ')}: {_fact(name, value)}" for name, value in self.facts.items()]
        table = self.table if self.shown_table is None else self.shown_table
        if table:
            lines += ["", *text_table(table, width)]
        texts = [f"  {note}" for note in self.notes] + [f"warning: {warning}" for warning in self.warnings]
        if width is not None:  # commands and paths are not broken
            options: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}
            texts = [
                textwrap.fill(text, max(width, 40), subsequent_indent="    ", **options) for text in texts
            ]
        return "\n".join(lines + texts)


def _fact(name: str, value: Any) -> str:
    if "bytes" in name:
        return format_size(round(value))
    if isinstance(value, float):
        return f"{value:.2%}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_fact(key, count)}" for key, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def text_table(rows: Sequence[Mapping[str, Any]], width: int | None = None) -> list[str]:
    """Rows under their names, in columns of the width they need, narrowed to fit where they would not."""

    def cell(value: Any) -> str:
        if value is None:
            return "?"
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    names = list(rows[0])
    cells = [names] + [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    if width is not None:
        while len(widths) > 2 and sum(min(each, _MIN_WIDTH) + 2 for each in widths) > width:
            widths.pop()
        while sum(widths) + 2 * len(widths) > width and max(widths) > _MIN_WIDTH:
            widths[widths.index(max(widths))] -= 1
    lines = []
    for line in cells:
        pairs = zip(line, widths, strict=False)
        shown = [text if len(text) <= most else text[: most - 1] + "…" for text, most in pairs]
        lines.append("".join(f"  {text:{most}}" for text, most in zip(shown, widths, strict=True)).rstrip())
    if len(widths) < len(names):
        lines.append(f"  (no room for: {', '.join(names[len(widths) :])}; see --json)")
    return lines


@dataclass(frozen=True, slots=True)
class LookOptions:
    full: bool = False
    """At all rows, with a progress bar."""
    memory_bytes: int | None = None
    """Of the whole process; None: 512 MiB, and more where the process is large already."""
    plain: bool = False
    reading: dict[str, str | bool | None] = field(default_factory=dict)
    """Arguments of `reading_of`."""

    @contextmanager
    def progress(self, num_rows: int) -> Iterator[ProgressLogger]:
        min_seconds = 1.0 if self.full else _BAR_AFTER_SECONDS
        with ProgressLogger(
            "inspecting", "rows", num_rows, plain=self.plain, min_seconds=min_seconds, show_end=self.full
        ) as progress:
            yield progress


def inspect(path: str | Path, look: LookOptions | None = None) -> Inspection:
    """Look at a path and say what it is; `look` is how to look at data, and with a dataset type that it is data."""
    where, look = Path(path), look or LookOptions()
    if (where / "manifest.json").exists() and where.name.startswith("step-"):
        return inspect_checkpoint(where)
    if (where / "run.yaml").exists():
        return inspect_run(where)
    if runs := [file.parent for file in sorted(where.glob("*/run.yaml")) if ModelDir(file.parent).log.read()]:
        return inspect_runs(where, runs)
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


# --- Data files -----------------------------------------------------------------------------------------


def inspect_data(path: str, look: LookOptions) -> Inspection:
    files = list_files(path, cure="")
    reading = reading_of(files, **look.reading)  # type: ignore[arg-type]
    dataset_type = dataset_type_of(reading, files)
    is_parquet = dataset_type == "ParquetDataset"
    scanned = scan_files(reading, files, ReadRequest())
    profile = _profile(scanned, look)
    if is_parquet and not profile.is_whole:
        add_footers(profile, scanned.files)
    bytes_on_disk = sum(file.size_bytes for file in files)
    parquet_part = None
    if dataset_type in ROW_FORMATS and profile.first_rows is not None and profile.num_rows:
        # What the first rows would take as Parquet, as a part of what rows take in the files.
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_batches([profile.first_rows]), sink, compression="zstd")
        row_bytes = sum(file.size_bytes for file in scanned.files) / profile.num_rows
        parquet_part = float(sink.getvalue().size / profile.first_rows.num_rows / row_bytes)
    kind = KINDS.get(dataset_type, dataset_type)
    storage = Storage(
        path=path,
        num_files=len(files),
        bytes_on_disk=bytes_on_disk,
        row_group_rows=tuple(scanned.blocks.num_rows.tolist()) if is_parquet else (),
        parquet_part=parquet_part,
        format_name=kind,
    )
    blocks, num_blocks = "row_groups" if storage.row_group_rows else "blocks", len(scanned.blocks)
    largest_rows = int(scanned.blocks.num_rows.max()) if num_blocks else 0
    facts: dict[str, int | float | str] = {
        "files": len(files),
        "rows": profile.num_rows,
        blocks: num_blocks,
        "bytes_on_disk": bytes_on_disk,
        "bytes_in_memory": round(profile.row_bytes * profile.num_rows),
        "bytes_per_row_on_disk": round(bytes_on_disk / max(1, profile.num_rows), 1),
        "bytes_per_row_in_memory": round(profile.row_bytes, 1),
        f"largest_{blocks[:-1]}_bytes": round(profile.row_bytes * largest_rows),
    }
    notes = []
    if not profile.is_whole:
        facts["rows_looked_at"] = profile.num_seen
        facts["part_looked_at"] = profile.num_seen / profile.num_rows
        exact = " (nulls, min and max of numbers: all rows, by the footers)" if is_parquet else ""
        notes.append(f"from rows at {profile.num_intervals} places{exact}; --full looks at all rows")
    if any(not column.distinct_is_exact for column in profile.columns):
        notes.append(f"~ is about: within {2 * STANDARD_ERROR:.0%} in 19 of 20 cases")
    if dataset_type == "CsvDataset":
        kind += " (first line taken for names)" if reading.with_header else " (without a header)"
    table = column_table(profile)
    return Inspection(
        kind=kind,
        facts=facts,
        table_name="columns",
        table=[{name: plain_value(value) for name, value in row.items()} for row in table],
        shown_table=shown_columns(profile, table),
        notes=notes,
        warnings=advise(profile, storage),
    )


def _profile(scanned: ScannedFiles, look: LookOptions) -> DataProfile:
    row_bytes = scanned.row_bytes  # looked up before memory is measured, since that reads a few rows
    pa.default_memory_pool().release_unused()
    process_bytes = tree_bytes()
    limit_bytes = memory_limit(look.memory_bytes, process_bytes)
    free_bytes = (limit_bytes - process_bytes) * 7 // 8 - _SKETCH_BYTES
    if free_bytes < scanned.sizes.min_bytes:
        needed_bytes = limit_bytes + (scanned.sizes.min_bytes - free_bytes) * 8 // 7
        raise BudgetExceeded(
            f"looking at rows of {format_size(row_bytes)} needs about {format_size(needed_bytes)} but may hold "
            f"{format_size(limit_bytes)}; raise --memory"
        )
    share = Share("the reader", min(free_bytes, scanned.sizes.ample_bytes), "--memory")
    pieces = choose_pieces(scanned.blocks, row_bytes, full=look.full)
    with look.progress(sum(piece.num_rows for piece in pieces)) as progress:
        return profile_pieces(scanned, share, pieces, on_rows=progress.advance)


# --- What penstock writes -------------------------------------------------------------------------------


def inspect_stored(path: Path, contents: Contents, look: LookOptions) -> Inspection:
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
    least, most = _item(found.min_value), _item(found.max_value)
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


def inspect_runs(path: Path, folders: Sequence[Path]) -> Inspection:
    """The runs of a folder beside each other: what their last evaluation gave, and whether they are over."""
    rows: list[dict[str, Any]] = []
    for run in map(read_run, folders):
        folder, because = ModelDir(run.path), run.end.get("stopped_because")
        state = "running" if folder.is_training() else "ended" if run.end else "killed"
        if because and state == "ended":
            state = "interrupted" if because.startswith("a signal") else "stopped"
        metric = BestMetric((run.config.get("export_config") or {}).get("best_exporter_metric", "auc"))
        started, best = folder.started_at, best_step(run.evaluations, metric)
        rows.append(
            {
                "run": run.name,
                "model": model_name(run.config),
                "steps": run.num_steps,
                "metrics": run.final_evaluation.get("metrics", {}),
                "losses": run.final_evaluation.get("losses", {}),
                "evaluated_step": run.final_evaluation.get("step"),
                "best": None if best is None else f"step-{best}",
                "state": state,
                "started": None if started is None else f"{datetime.fromtimestamp(started):%Y-%m-%d %H:%M}",
            }
        )
    # Metrics that most runs have come first; the last columns go where there is no space for all.
    counts = [Counter(name for row in rows for name in row[part]) for part in ("metrics", "losses")]
    names = [name for count in counts for name, _ in count.most_common()]
    shown = []
    for row in rows:
        found = {**row["losses"], **row["metrics"]}
        values = {name: number(found[name]) if found.get(name) is not None else "" for name in names}
        facts = {name: "" if row[name] is None else str(row[name]) for name in ("best", "state", "started")}
        facts["started"] = facts["started"][len("2026-") :]  # so that the usual columns fit a terminal
        head = {"run": row["run"], "model": row["model"] or "", "steps": f"{row['steps']:,}"}
        shown.append({**head, **dict(list(values.items())[:_SHOWN_VALUES]), **facts, **values})
    return Inspection("runs", {"folder": str(path)}, "runs", rows, shown_table=shown)
