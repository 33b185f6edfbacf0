"""Tables and texts of the page: evaluations, groups, the training data, the configuration."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.config.sizes import format_size
from penstock.config.write import differences
from penstock.features.value_counts import ValueCounts
from penstock.observe.data_profile import shown_value, shown_values
from penstock.observe.report.run_record import Record, RunRecord
from penstock.observe.summary import counted, shown_share, unknown_line
from penstock.training.best import best_of


@dataclass(frozen=True, slots=True)
class Text:
    value: str
    look: str = "quiet"
    form: ClassVar = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """The first column names the row; a cell is a string, or a mapping with text, bold and title."""

    head: Sequence[str]
    rows: Sequence[Sequence[Any]]
    kind: str = ""
    form: ClassVar = "table"


@dataclass(frozen=True, slots=True)
class Details:
    title: str
    parts: Sequence["Part"]
    is_open: bool = False
    form: ClassVar = "details"


Part = Text | Table | Details | Mapping[str, Any]
"""What page.html.j2 draws by its `form`."""

MAX_GROUPS = 50
MAX_OPEN_EVALUATIONS = 8
MAX_REMARK_STEPS = 5
MAX_OPEN_COLUMNS = 40
"""A longer table is folded at first."""
_NO_QUANTITIES = ("id_feature ", "grouping ", "session ", "mask ")
"""Uses of columns whose numbers are names."""
_SIGNS = {"exactly": "", "about": "~", "at least": "≥"}


# --- Evaluations -----------------------------------------------------------------------------------------


def evaluations(run: RunRecord) -> Iterator[Part]:
    """All evaluations; then why a value is undefined, how many groups a mean is over: each once, with its steps."""
    if not run.evaluations:
        return
    columns = [(part, name) for part in ("losses", "metrics") for name in run.names[part]]
    rows: list[list[Any]] = []
    steps_of: dict[tuple[str, str], list[int]] = {}
    for record in run.evaluations:
        step = record["step"]
        row = [
            f"{step:,}" + (" (restored)" if step == run.restored_step else ""),
            str(record.get("epoch", "")),
        ]
        row += [f"{record.get('rows', 0):,}", f"{record.get('seconds', 0):.1f}"]
        rows.append([*row, *(_value_cell(record, part, name) for part, name in columns)])
        for remark in (record.get("remarks") or {}).items():
            steps_of.setdefault(remark, []).append(step)
    head = ["step", "epoch", "rows", "seconds", *(name for _, name in columns)]
    is_open = len(rows) <= MAX_OPEN_EVALUATIONS
    yield Details(f"all evaluations of {run.name}", [Table(head, rows, "numbers")], is_open)
    items = []
    for (name, remark), steps in steps_of.items():
        where = ""
        if len(steps) < len(run.evaluations):
            named = [f"{step:,}" for step in steps[:MAX_REMARK_STEPS]]
            if len(steps) > MAX_REMARK_STEPS:
                named.append(f"{len(steps) - MAX_REMARK_STEPS} more")
            where = f" at step{'s' * (len(steps) > 1)} {'; '.join(named)}"
        items.append(f"{name}{where}: {remark}")
    last = run.evaluations[-1].get("value_counts") or {}
    unknown = unknown_line({name: ValueCounts(**each) for name, each in last.items()})
    if unknown:
        items.append(
            f"values that the model does not know, at step {run.evaluations[-1]['step']:,}: {unknown}"
        )
    if items:
        yield {"form": "list", "value": items}


def final_values(runs: Sequence[RunRecord]) -> Part:
    """What each run ended with, the best value of each line in bold, then steps, speed and memory."""
    losses = {name for run in runs for name in run.names["losses"]}
    names = dict.fromkeys(name for run in runs for name in run.final_values)
    rows: list[list[Any]] = []
    for name in names:
        values = [run.final_values.get(name) for run in runs]
        known = [value for value in values if value is not None]
        best = best_of(name, known, losses) if len(set(known)) > 1 else None
        cells = []
        for run, value in zip(runs, values, strict=True):
            record = run.final_evaluation
            cell = _value_cell(record, "losses" if name in record.get("losses", {}) else "metrics", name)
            cells.append({**cell, "bold": best is not None and value == best})
        rows.append([name, *cells])
    if names:
        steps = []
        for run in runs:
            step = run.final_evaluation.get("step")
            restored = " (restored)" if step == run.restored_step else ""
            steps.append("" if step is None else f"{step:,}{restored}")
        rows.append(["evaluated step", *steps])
    early = [", stopped early" if run.end.get("stopped_because") else "" for run in runs]
    rows.append(["steps", *(f"{run.num_steps:,}{note}" for run, note in zip(runs, early, strict=True))])
    speeds = [run.last.get("rows_per_second") for run in runs]
    peaks = [run.memory.get("peak_bytes") for run in runs]
    rows.append(["rows/s", *("" if speed is None else f"{speed:,.0f}" for speed in speeds)])
    rows.append(["peak memory", *("" if peak is None else format_size(peak) for peak in peaks)])
    return Table(["", *(run.name for run in runs)], rows, "numbers")


def _value_cell(record: Record, part: str, name: str) -> dict[str, Any]:
    """A value, with its remark under the pointer; empty where the evaluation does not have it."""
    if name not in (record.get(part) or {}):
        return {"text": ""}
    value = record[part][name]
    shown = "undefined" if value is None else f"{value:.5f}"
    return {"text": shown, "title": (record.get("remarks") or {}).get(name)}


def groups(runs: Sequence[RunRecord]) -> list[Part]:
    """AUC of the largest groups (`group_auc` of an evaluation: objects with group, rows, auc)."""
    found: list[tuple[str, list[Part]]] = []
    for run in runs:
        if not run.group_auc:
            continue
        rows = []
        for each in sorted(run.group_auc, key=lambda group: -group["rows"])[:MAX_GROUPS]:
            auc = "one class" if each["auc"] is None else f"{each['auc']:.4f}"
            rows.append([str(each["group"]), f"{each['rows']:,}", auc])
        notes = (run.final_evaluation.get("remarks") or {}).items()
        means = "".join(f"{name}: {remark}. " for name, remark in notes if name.startswith("grouped_auc"))
        shown = "is the group" if len(rows) == 1 else f"are the {len(rows)} groups"
        note = Text(f"{means}Here {shown} with most rows.")
        found.append((run.name, [note, Table(["group", "rows", "AUC"], rows, "numbers narrow")]))
    if len(runs) == 1:
        return [part for _, parts in found for part in parts]
    return [{"form": "beside", "value": found}]


# --- Data ------------------------------------------------------------------------------------------------


def data_facts(run: RunRecord) -> Iterator[tuple[str, str]]:
    start, shuffle = run.start, run.end.get("shuffle") or {}
    files, counts = run.version.get("data") or {}, {**run.last, **run.end}
    if files:
        size = format_size(sum(size for size in files.values() if isinstance(size, int)))
        yield "training files", f"{counted(len(files), 'file')}, {size}"
    if "rows" in counts:
        yield "rows trained on", f"{counts['rows']:,} in {counted(counts.get('epoch', 0), 'whole epoch')}"
    if run.evaluations:
        yield "rows evaluated on", f"{run.final_evaluation.get('rows', 0):,}"
    if run.end.get("left_out_rows") is not None:
        yield "rows left out as unusable", f"{run.end['left_out_rows']:,}"
    if "shuffle_rows" in start:
        yield "shuffled", f"in windows of {start['shuffle_rows']:,} rows" if start["shuffle_rows"] else "no"
    if "block_coverage" in shuffle:
        yield "blocks that a batch draws on", f"{shuffle['block_coverage']:.0%} of those of an ideal shuffle"
    if "label_autocorrelation" in shuffle:
        yield "correlation of neighbouring labels", f"{shuffle['label_autocorrelation']:.3f} (0 is ideal)"
    if run.end.get("skipped_batches"):
        yield "batches skipped", f"{run.end['skipped_batches']:,}, since their loss was not finite"
    if run.end.get("overflowed_batches"):
        yield "batches passed over", f"{run.end['overflowed_batches']:,}, with gradients too large for FP16"
    if start.get("seconds_to_first_step") is not None:
        yield "time to the first step", f"{start['seconds_to_first_step']:.1f} s"


def data_remarks(run: RunRecord, alone: bool) -> list[str]:
    """What `train` warned of when it started: traps that it saw in the data."""
    whose = "" if alone else f"{run.name}: "
    return [f"{whose}{remark}" for remark in run.data_profile.get("remarks", [])]


def data_profile(run: RunRecord, alone: bool) -> Part:
    """The columns of the training data in a table, folded where it is long or one of several."""
    profile, whose = run.data_profile, "" if alone else f" of {run.name}"
    columns = profile.get("columns")
    if not columns:
        return Text(f"There is no data profile{whose}: {profile.get('problem', 'none was recorded')}.")
    rows, looked_at = profile.get("rows", 0), profile.get("rows_looked_at", 0)
    note = (
        f"From {looked_at:,} of {rows:,} rows, from all over the files; ≥: about so many in these rows alone."
    )
    if looked_at == rows:
        note = f"From all {rows:,} rows; ~: about."
    used = profile.get("columns_used", 0)
    if used > len(columns):
        note += f" The first {len(columns):,} of {used:,} columns that the run reads."
    note += " Columns that the run does not read are not looked at."
    lines, unknown = [], dict[str, str]()
    for counts in profile.get("value_counts", {}).values():
        if counts["unknown"]:
            share = shown_share(counts["unknown"] / max(1, counts["values"]))
            unknown[counts["column"]] = f"{share} {counts['outside']}"
    for column in columns:
        uses, mean, distinct = column.get("used_for", []), column.get("mean"), column.get("distinct", 0)
        is_id = all(use.startswith(_NO_QUANTITIES) for use in uses)
        shortest, longest, items = column.get("shortest"), column.get("longest"), ""
        if shortest is not None and longest is not None:
            mean_length = column.get("mean_length") or 0
            items = f"{shortest:,} to {longest:,}, mean {mean_length:.1f}"
            if shortest == longest:
                items = f"{longest:,}"
        shown = shown_values(column)
        line = {
            "column": str(column.get("column", "")),
            "type": str(column.get("type", "")),
            "used for": ", ".join(uses),
            "missing": shown["nulls"],
            "unknown": unknown.get(column.get("column", ""), ""),
            "distinct": f"{_SIGNS.get(column.get('distinct_is', ''), '')}{distinct:,}",
            "minimum": shown["min"],
            "maximum": shown["max"],
            "items": items,
            "most frequent": shown["most frequent"],
            "mean": "" if mean is None or is_id else shown_value(float(mean)),
        }
        lines.append(line)
    head = [name for name in lines[0] if any(line[name] for line in lines)]
    found = Table(head, [[line[name] for name in head] for line in lines], "columns")
    title = f"Data profile{whose}: {counted(len(columns), 'column')}"
    return Details(title, [Text(note, "note quiet"), found], alone and len(columns) <= MAX_OPEN_COLUMNS)


# --- Memory ----------------------------------------------------------------------------------------------


def stages(run: RunRecord) -> Part:
    """What each stage was to hold and held, and the key that makes it smaller."""
    rows = []
    for name, stage in run.memory["stages"].items():
        sizes = [stage.get(key) for key in ("planned_bytes", "measured_bytes")]
        shown = ["" if size is None else format_size(size) for size in sizes]
        rows.append([name, *shown, stage.get("setting", "")])
    return Details(
        f"memory of {run.name} by stage", [Table(["stage", "planned", "measured", "set by"], rows)]
    )


# --- Configuration ---------------------------------------------------------------------------------------


def config_differences(runs: Sequence[RunRecord]) -> Part:
    found = differences([run.config for run in runs])
    if not found:
        return Text("The run files say the same.")
    rows = [[each.key, *("not set" if value is None else value for value in each.values)] for each in found]
    return Table(["key", *(run.name for run in runs)], rows, "config")


def configuration(runs: Sequence[RunRecord]) -> list[Part]:
    """The whole run files, and the versions of packages."""
    parts: list[Part] = [
        Details(f"run.yaml of {run.name}", [{"form": "pre", "value": run.config_text}])
        for run in runs
        if run.config_text
    ]
    for run in runs:
        if run.version.get("packages"):
            rows = [[name, str(version)] for name, version in run.version["packages"].items()]
            parts.append(Details(f"versions of {run.name}", [Table(["package", "version"], rows)]))
    return parts
