"""The page of one run, or of several beside each other: its parts as plain values, which page.html.j2 draws.

A part is a mapping with its `form` (lines, bars, charts, table, text, list, details, ...) and its `value`.
What a run has no records of is absent, not empty.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jinja2

from penstock.config.difference import differences
from penstock.config.errors import ConfigError
from penstock.config.sizes import format_size
from penstock.observe.numbers import counted
from penstock.observe.report.charts import BarSeries, LineChart, Series, bar_chart, known_points, line_chart
from penstock.observe.report.run_record import (
    Record,
    RunRecord,
    last_with,
    model_name,
    names_of,
    number_at,
    previous_run,
    read_runs,
)
from penstock.observe.report.tables import Part, column_part, details, table, text
from penstock.training.best import best_of

REPORT = "report.html"
COMPARISON = "comparison.html"
"""Of several runs: beside the report that the first one has."""

HERE = Path(__file__).parent
MAX_TILES = 4
"""How many losses and metrics stand at the top; all are in the table of evaluations."""
MAX_GROUPS = 50
MAX_OPEN_EVALUATIONS = 8
MAX_REMARK_STEPS = 5
MAX_RATE_RATIO = 20
"""How many times larger a learning rate may be than another in the same chart."""
SPEED_CHARTS: dict[str, tuple[str, str, Mapping[str, Any]]] = {
    "rows_per_second": ("Throughput", "rows per second", {"y_unit": "count"}),
    "waiting_share": (
        "Waiting against computing",
        "waiting (the rest is computing)",
        {"y_unit": "share", "filled": True, "top": 1.0},
    ),
    "cpu_share": ("Processor", "share of the cores in use", {"y_unit": "share"}),
    "read_bytes_per_second": ("Reading from disk", "bytes per second", {"y_unit": "bytes"}),
    "device_memory_bytes": ("Memory of the device", "bytes", {"y_unit": "bytes"}),
}
"""By key of a log line: title, y label and options of its chart."""

logger = logging.getLogger(__name__)


def write_report(model_dir: Path, others: Sequence[Path] = (), output: Path | None = None) -> Path:
    """Write the page of a run, or of several beside each other; returns its path, in the first by default."""
    if output is not None and not output.parent.is_dir():
        raise ConfigError(f"--output: there is no folder '{output.parent}'; make it first")
    if output is not None and output.is_dir():
        raise ConfigError(f"--output: '{output}' is a folder; name a file in it")
    runs = read_runs([model_dir, *others])
    page = page_of(runs, previous_run(runs[0]) if len(runs) == 1 else None)
    path = output if output is not None else model_dir / (REPORT if len(runs) == 1 else COMPARISON)
    path.write_text(page, encoding="utf-8")
    return path


def try_to_write_report(model_dir: Path) -> Path | None:
    """The page of a run that has just ended; a run that is trained and saved never fails for it."""
    try:
        return write_report(model_dir)
    except Exception as error:
        logger.warning("report.html was not written: %s (penstock report %s tries again)", error, model_dir)
        return None


def page_of(runs: Sequence[RunRecord], previous: RunRecord | None = None) -> str:
    """HTML of the page; `previous` is what a single run is compared with."""
    names = " and ".join(filter(None, [", ".join(run.name for run in runs[:-1]), runs[-1].name]))
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True)
    return environment.get_template("page.html.j2").render(
        names=names,
        title=names if len(runs) == 1 else f"{len(runs)} runs: {names}",
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=(HERE / "page.js").read_text(encoding="utf-8"),
        tiles=list(tiles(runs[0])) if len(runs) == 1 else [],
        outcomes=list(filter(None, map(outcome, runs))),
        advice=[(run.name, run.advice) for run in runs if run.advice],
        sections=[(heading, list(filter(None, parts))) for heading, parts in sections(runs, previous)],
    )


def sections(
    runs: Sequence[RunRecord], previous: RunRecord | None
) -> Iterator[tuple[str, Iterable[Part | None]]]:
    if len(runs) > 1:
        yield "Final metrics", [final_table(runs)]
    quality = [loss_chart(runs), *metric_charts(runs), *rate_charts(runs), calibration_chart(runs)]
    yield "Quality", [*map(too_short, runs), charts(quality)]
    yield "Groups", groups(runs)
    yield "Evaluations", [part for run in runs for part in (evaluation_table(run), remarks(run))]
    yield "Speed", [charts(speed_charts(runs))]
    yield "Memory", [*map(limit_meter, runs), charts([memory_chart(runs)], stage_bars(runs))]
    yield "Data", [data_table(runs), *(column_part(run, len(runs) == 1) for run in runs if run.data_profile)]
    if len(runs) > 1:
        yield "What differs in the configuration", [difference_table(runs)]
    elif runs[0].config and previous is not None:
        yield f"Configuration since {previous.name}", [difference_table([previous, *runs])]
    elif runs[0].config:
        model = model_name(runs[0].config) or "this model"
        reason = f"No earlier run of {model} on the same train_input_path lies in a folder beside this one."
        yield "What changed in the configuration", [text(reason)]
    yield "Configuration", [*map(config_text, runs), *map(version_table, runs)]


# --- Forms -----------------------------------------------------------------------------------------------


def charts(found: Iterable[LineChart | None], *others: Part | None) -> Part | None:
    """Charts beside each other, as many as the page is wide."""
    shown = [{"form": "lines", "value": chart} for chart in found if chart]
    shown += [dict(other) for other in others if other]
    return {"form": "charts", "value": shown} if shown else None


# --- The run as a whole ----------------------------------------------------------------------------------


def tiles(run: RunRecord) -> Iterator[tuple[str, Sequence[str | None]]]:
    """The figures one looks for first; where they are not of the last step, they say of which."""
    step = run.final_evaluation.get("step")
    of_step = None if step in (None, run.num_steps) else f"of step {step:,}"
    reasons = run.final_evaluation.get("remarks") or {}
    for name, value in list(run.final_values().items())[:MAX_TILES]:
        if value is None:
            yield "undefined", [name, reasons.get(name), of_step]
        else:
            yield f"{value:.4f}", [name, of_step]
    last = run.last
    if last.get("loss") is not None:
        yield f"{last['loss']:.4f}", ["training loss"]
    yield f"{run.num_steps:,}", ["steps"]
    if "rows_per_second" in last:
        yield f"{last['rows_per_second']:,}", ["rows/s"]
    if "waiting_share" in last:
        yield f"{last['waiting_share']:.0%}", ["waiting for data"]
    if run.memory.get("peak_bytes"):
        yield format_size(run.memory["peak_bytes"]), ["peak memory"]


def outcome(run: RunRecord) -> tuple[str, str] | None:
    """Whether it stopped early and why, and which step's parameters it ended with."""
    if run.stopped_because:
        head, rest = f"{run.name} stopped early at step {run.num_steps:,}: ", f"{run.stopped_because}."
    elif run.restored_step is not None:
        head, rest = f"{run.name} ran to its end at step {run.num_steps:,}.", ""
    else:
        return None
    if run.restored_step is not None:
        rest += (
            f" It went back to step {run.restored_step:,}, the best one, which eval and predict take: final metrics, "
            "calibration and groups on this page are of that step."
        )
    return head, rest


def too_short(run: RunRecord) -> Part | None:
    """Why a run that has ended shows no curves: it was over before the first line of the log."""
    if not run.end or run.steps:
        return None
    return text(
        f"{run.name} has no curves of training: it ended at step {run.num_steps:,}, before the first line of its log "
        "was due; a smaller train_config.log_step_count_steps gives some."
    )


# --- Curves ----------------------------------------------------------------------------------------------


def curves(
    runs: Sequence[RunRecord], found: Iterable[tuple[RunRecord, str, bool, Iterable[Record], Sequence[str]]]
) -> list[Series]:
    """Series of (run, name, whether of evaluations, records, path to the number in a record).

    With several runs each series has its run's name and colour; in one run each has its own colour.
    """
    series: list[Series] = []
    for run, name, evaluated, records, path in found:
        points = known_points((record["step"], number_at(record, *path)) for record in records)
        if points:
            color = runs.index(run) if len(runs) > 1 else len(series)
            label = f"{run.name}: {name}" if len(runs) > 1 else name
            series.append(Series(label, points, color, dashed=evaluated, dotted=evaluated))
    return series


def loss_chart(runs: Sequence[RunRecord]) -> LineChart | None:
    """The mean loss of the steps between two lines of the log, and the losses of evaluations."""
    found: list[tuple[RunRecord, str, bool, Iterable[Record], Sequence[str]]] = []
    for run in runs:
        found.append((run, "train", False, run.steps, ["loss"]))
        evaluated = names_of(run.evaluations, "losses")
        found += [(run, f"eval {name}", True, run.evaluations, ["losses", name]) for name in evaluated]
    return line_chart("Loss", "loss (mean over rows)", curves(runs, found), mark=restored_mark(runs))


def metric_charts(runs: Sequence[RunRecord]) -> Iterator[LineChart | None]:
    """One chart for each metric: scales differ."""
    names = [names_of(run.evaluations, "metrics") + names_of(run.steps, "train_metrics") for run in runs]
    for name in dict.fromkeys(name for of_run in names for name in of_run):
        found: list[tuple[RunRecord, str, bool, Iterable[Record], Sequence[str]]] = []
        for run in runs:
            found.append((run, "train", False, run.steps, ["train_metrics", name]))
            found.append((run, "eval", True, run.evaluations, ["metrics", name]))
        yield line_chart(name, name, curves(runs, found), mark=restored_mark(runs))


def rate_charts(runs: Sequence[RunRecord]) -> Iterator[LineChart | None]:
    """Learning rates; those of another order of magnitude have a chart where their shape can be seen."""
    names = dict.fromkeys(name for run in runs for name in names_of(run.steps, "learning_rate"))
    largest = {
        name: max(number_at(record, "learning_rate", name) or 0.0 for run in runs for record in run.steps)
        for name in names
    }
    together: list[list[str]] = []
    for name in sorted(largest, key=lambda name: -largest[name]):
        if together and largest[name] * MAX_RATE_RATIO >= largest[together[-1][0]]:
            together[-1].append(name)
        else:
            together.append([name])
    for group in together:
        title = "Learning rate" if len(together) == 1 else f"Learning rate: {', '.join(group)}"
        found = [(run, name, False, run.steps, ["learning_rate", name]) for name in group for run in runs]
        series = curves(runs, found)
        first = len([each for each in series if each.name.endswith(group[0])])
        drawn = [replace(each, dashed=index >= first) for index, each in enumerate(series)]
        yield line_chart(title, "learning rate", drawn, from_zero=True)


def speed_charts(runs: Sequence[RunRecord]) -> Iterator[LineChart | None]:
    for key, (title, label, options) in SPEED_CHARTS.items():
        found = [(run, title.split()[0].lower(), False, run.steps, [key]) for run in runs]
        yield line_chart(title, label, curves(runs, found), from_zero=True, **options)


def memory_chart(runs: Sequence[RunRecord]) -> LineChart | None:
    """The process tree over the steps, under its limit where all runs have the same."""
    found = [(run, "process tree", False, run.steps, ["memory_bytes"]) for run in runs]
    limits = {run.limit_bytes for run in runs}
    limit = limits.pop() if len(limits) == 1 else None
    return line_chart(
        "Memory",
        "memory of the process tree",
        curves(runs, found),
        y_unit="bytes",
        from_zero=True,
        reference=None if limit is None else ("memory.limit", limit),
    )


def calibration_chart(runs: Sequence[RunRecord]) -> LineChart | None:
    """Observed against predicted rates: `calibration_bins` of the final evaluation, by the name of the metric."""
    series = []
    for index, run in enumerate(runs):
        for number, (name, bins) in enumerate((last_with(run, "calibration_bins") or {}).items()):
            points = known_points(zip(bins["predicted"], bins["observed"], strict=True))
            if points:
                label, color = (f"{run.name}: {name}", index) if len(runs) > 1 else (name, number)
                series.append(Series(label, points, color, dashed=number > 0, dotted=True))
    if series:
        values = [value for each in series for point in each.points for value in point]
        low, high = min(values), max(values)
        series.append(Series("ideal", [(low, low), (high, high)], color=7, dashed=True))
    return line_chart(
        "Calibration", "observed rate", series, x_label="predicted probability", x_unit="number"
    )


def restored_mark(runs: Sequence[RunRecord]) -> tuple[str, float] | None:
    step = runs[0].restored_step if len(runs) == 1 else None
    return None if step is None else (f"step {step:,}, restored", step)


# --- Evaluations -----------------------------------------------------------------------------------------


def evaluation_table(run: RunRecord) -> Part | None:
    if not run.evaluations:
        return None
    columns = [(part, name) for part in ("losses", "metrics") for name in names_of(run.evaluations, part)]
    rows = [
        [
            step_cell(run, record["step"]),
            str(record.get("epoch", "")),
            f"{record.get('rows', 0):,}",
            f"{record.get('seconds', 0):.1f}",
            *(value_cell(record, part, name) for part, name in columns),
        ]
        for record in run.evaluations
    ]
    head = ["step", "epoch", "rows", "seconds", *(name for _, name in columns)]
    found = table(head, rows, "numbers")
    return details(f"all evaluations of {run.name}", found, is_open=len(rows) <= MAX_OPEN_EVALUATIONS)


def remarks(run: RunRecord) -> Part | None:
    """Why a value is undefined, how many groups a mean is over; each once, with the steps it holds for."""
    steps_of: dict[tuple[str, str], list[int]] = {}
    for record in run.evaluations:
        for name, remark in (record.get("remarks") or {}).items():
            steps_of.setdefault((name, remark), []).append(record["step"])
    items = []
    for (name, remark), steps in steps_of.items():
        where = ""
        if len(steps) < len(run.evaluations):
            named = [f"{step:,}" for step in steps[:MAX_REMARK_STEPS]]
            if len(steps) > MAX_REMARK_STEPS:
                named.append(f"{len(steps) - MAX_REMARK_STEPS} more")
            where = f" at step{'s' * (len(steps) > 1)} {'; '.join(named)}"
        items.append(f"{name}{where}: {remark}")
    return {"form": "list", "value": items} if items else None


def final_table(runs: Sequence[RunRecord]) -> Part:
    """What each run ended with, the best value of each line in bold, then steps, speed and memory."""
    losses = {name for run in runs for name in names_of(run.evaluations, "losses")}
    names = dict.fromkeys(name for run in runs for name in run.final_values())
    rows: list[list[Any]] = []
    for name in names:
        values = [run.final_values().get(name) for run in runs]
        known = [value for value in values if value is not None]
        best = best_of(name, known, losses) if len(set(known)) > 1 else None
        cells = []
        for run, value in zip(runs, values, strict=True):
            record = run.final_evaluation
            cell = value_cell(record, "losses" if name in record.get("losses", {}) else "metrics", name)
            cells.append({**cell, "bold": best is not None and value == best})
        rows.append([name, *cells])
    if names:
        steps = [(run, run.final_evaluation.get("step")) for run in runs]
        rows.append(
            ["evaluated step", *("" if step is None else step_cell(run, step) for run, step in steps)]
        )
    rows.append(
        ["steps", *(f"{run.num_steps:,}" + ", stopped early" * bool(run.stopped_because) for run in runs)]
    )
    speeds = [run.last.get("rows_per_second") for run in runs]
    peaks = [run.memory.get("peak_bytes") for run in runs]
    rows.append(["rows/s", *("" if speed is None else f"{speed:,.0f}" for speed in speeds)])
    rows.append(["peak memory", *("" if peak is None else format_size(peak) for peak in peaks)])
    return table(["", *(run.name for run in runs)], rows, "numbers")


def value_cell(record: Record, part: str, name: str) -> dict[str, Any]:
    """A value, with its remark under the pointer; empty where the evaluation does not have it."""
    if name not in (record.get(part) or {}):
        return {"text": ""}
    value = number_at(record, part, name)
    return {
        "text": "undefined" if value is None else f"{value:.5f}",
        "title": (record.get("remarks") or {}).get(name),
    }


def step_cell(run: RunRecord, step: int) -> str:
    return f"{step:,}" + (" (restored)" if step == run.restored_step else "")


def groups(runs: Sequence[RunRecord]) -> list[Part]:
    """AUC of the largest groups (`group_auc` of an evaluation: objects with group, rows, auc)."""
    found = []
    for run in runs:
        known = last_with(run, "group_auc")
        if not known:
            continue
        largest = sorted(known, key=lambda group: -group["rows"])[:MAX_GROUPS]
        rows = [
            [
                str(each["group"]),
                f"{each['rows']:,}",
                "one class" if each["auc"] is None else f"{each['auc']:.4f}",
            ]
            for each in largest
        ]
        notes = (run.final_evaluation.get("remarks") or {}).items()
        means = "".join(f"{name}: {remark}. " for name, remark in notes if name.startswith("grouped_auc"))
        shown = "is the group" if len(rows) == 1 else f"are the {len(rows)} groups"
        parts = [
            text(f"{means}Here {shown} with most rows."),
            table(["group", "rows", "AUC"], rows, "numbers narrow"),
        ]
        found.append((run.name, parts))
    if len(runs) == 1:
        return [part for _, parts in found for part in parts]
    return [{"form": "beside", "value": found}] if found else []


# --- Memory, data, configuration -------------------------------------------------------------------------


def stage_bars(runs: Sequence[RunRecord]) -> Part | None:
    """Planned beside measured for one run; what was measured, run beside run, for several."""
    known = [(color, run) for color, run in enumerate(runs) if run.memory.get("stages")]
    names = list(dict.fromkeys(name for _, run in known for name in run.memory["stages"]))
    if not names:
        return None

    def values(run: RunRecord, key: str) -> list[float | None]:
        return [run.memory["stages"].get(name, {}).get(key) for name in names]

    if len(runs) == 1:
        series = [
            BarSeries("planned", values(runs[0], "planned_bytes"), hollow=True),
            BarSeries("measured", values(runs[0], "measured_bytes")),
        ]
    else:
        series = [BarSeries(run.name, values(run, "measured_bytes"), color) for color, run in known]
    return {
        "form": "bars",
        "value": bar_chart("Memory by stage", names, "memory held at most", "bytes", series),
    }


def limit_meter(run: RunRecord) -> Part | None:
    """The peak as a part of the limit."""
    peak, limit = run.memory.get("peak_bytes"), run.limit_bytes
    if not peak or not limit:
        return None
    stage = run.memory.get("peak_stage", "the run")
    line = f"{run.name}: peak {format_size(peak)} of {format_size(limit)} ({peak / limit:.0%}), in {stage}"
    return {
        "form": "limit",
        "value": line,
        "width": f"{min(100, 100 * peak / limit):.1f}",
        "is_over": peak > limit,
    }


def data_table(runs: Sequence[RunRecord]) -> Part | None:
    """Facts of the data, one a line, a column for each run."""
    facts = [dict(data_facts(run)) for run in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    rows = [[name, *(each.get(name, "") for each in facts)] for name in names]
    return table(["", *(run.name for run in runs)], rows) if rows else None


def data_facts(run: RunRecord) -> Iterator[tuple[str, str]]:
    start, shuffle = run.events.get("start", {}), run.end.get("shuffle") or {}
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


def difference_table(runs: Sequence[RunRecord]) -> Part:
    """The keys in which run files differ, a column for each run."""
    found = differences([run.config for run in runs])
    if not found:
        return text("The run files say the same.")
    rows = [[each.key, *("not set" if value is None else value for value in each.values)] for each in found]
    return table(["key", *(run.name for run in runs)], rows, "config")


def config_text(run: RunRecord) -> Part | None:
    if not run.config_text:
        return None
    return details(f"run.yaml of {run.name}", {"form": "pre", "value": run.config_text})


def version_table(run: RunRecord) -> Part | None:
    packages = run.version.get("packages")
    if not packages:
        return None
    rows = [[name, str(version)] for name, version in packages.items()]
    return details(f"versions of {run.name}", table(["package", "version"], rows))
