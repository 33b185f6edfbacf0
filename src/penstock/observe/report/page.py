"""The page of one run, or of several beside each other: its parts as plain values, which page.html.j2 draws.

Each part and each chart says by its `form` how it is drawn (lines, bars, table, text, list, details, ...).
What a run has no records of is absent, not empty.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import jinja2

from penstock.config.errors import ConfigError
from penstock.config.sizes import format_size
from penstock.observe.report import tables
from penstock.observe.report.charts import BarSeries, Chart, Series, bar_chart, known_points, line_chart
from penstock.observe.report.run_record import RunRecord, model_name, previous_run, read_run, read_runs
from penstock.observe.report.tables import Part, Table, Text

REPORT = "report.html"
COMPARISON = "comparison.html"
"""Of several runs: beside the report that the first one has."""

HERE = Path(__file__).parent
MAX_TILES = 4
"""How many losses and metrics stand at the top; all are in the table of evaluations."""
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
    runs = read_runs([model_dir, *others]) if others else [read_run(model_dir)]
    page = page_of(runs, None if others else previous_run(runs[0]))
    path = output if output is not None else model_dir / (COMPARISON if others else REPORT)
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
    is_one = len(runs) == 1
    names = " and ".join(filter(None, [", ".join(run.name for run in runs[:-1]), runs[-1].name]))
    speed = []
    for key, (title, label, options) in SPEED_CHARTS.items():
        series = curves(runs, [(run, title.split()[0].lower(), False, key) for run in runs])
        speed.append(line_chart(title, label, series, from_zero=True, **options))
    facts = [dict(tables.data_facts(run)) for run in runs]
    rows = [[name, *(each.get(name, "") for each in facts)] for name in dict.fromkeys(chain(*facts))]
    data: list[Part] = [Table(["", *(run.name for run in runs)], rows)] if rows else []
    data += [Text(remark) for run in runs for remark in tables.data_remarks(run, is_one)]
    data += [tables.data_profile(run, is_one) for run in runs if run.data_profile]
    if not is_one:
        since, changed = "What differs in the configuration", tables.config_differences(runs)
    elif previous is not None:
        since, changed = f"Configuration since {previous.name}", tables.config_differences([previous, *runs])
    else:
        model = model_name(runs[0].config) or "this model"
        reason = f"No earlier run of {model} on the same train_input_path lies in a folder beside this one."
        since, changed = "What changed in the configuration", Text(reason)
    # Heading, parts and charts; a section without any is left out.
    sections: list[tuple[str, Iterable[Part], Iterable[Chart | None]]] = [
        ("Final metrics", [] if is_one else [tables.final_values(runs)], []),
        ("Quality", *quality(runs)),
        ("Groups", tables.groups(runs) if any(run.group_auc for run in runs) else [], []),
        ("Evaluations", chain.from_iterable(map(tables.evaluations, runs)), []),
        ("Speed", [], speed),
        ("Memory", *memory(runs)),
        ("Data", data, []),
        (since, [changed] if runs[0].config or not is_one else [], []),
        ("Configuration", tables.configuration(runs), []),
    ]
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(HERE), autoescape=True)
    return environment.get_template("page.html.j2").render(
        names=names,
        title=names if is_one else f"{len(runs)} runs: {names}",
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        script=(HERE / "page.js").read_text(encoding="utf-8"),
        tiles=list(tiles(runs[0])) if is_one else [],
        # A run is spoken of that stopped early, or went back to its best step.
        outcomes=[
            outcome(run) for run in runs if run.end.get("stopped_because") or run.restored_step is not None
        ],
        advice=[
            (run.name, run.end[kind]["text"])
            for run in runs
            for kind in ("quality_advice", "advice")
            if run.end.get(kind)
        ],
        sections=[
            (heading, list(parts), [chart for chart in charts if chart])
            for heading, parts, charts in sections
        ],
    )


def tiles(run: RunRecord) -> Iterator[tuple[str, Sequence[str | None]]]:
    """The figures one looks for first; where they are not of the last step, they say of which."""
    step = run.final_evaluation.get("step")
    of_step = None if step in (None, run.num_steps) else f"of step {step:,}"
    reasons = run.final_evaluation.get("remarks") or {}
    for name, value in list(run.final_values.items())[:MAX_TILES]:
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


def outcome(run: RunRecord) -> tuple[str, str]:
    """Whether it stopped early and why, and which step's parameters it ended with."""
    head, rest = f"{run.name} ran to its end at step {run.num_steps:,}.", ""
    if run.end.get("stopped_because"):
        head, rest = f"{run.name} stopped early at step {run.num_steps:,}: ", f"{run.end['stopped_because']}."
    if run.restored_step is not None:
        rest += (
            f" It went back to step {run.restored_step:,}, the best one, which eval and predict take: final metrics, "
            "calibration and groups on this page are of that step."
        )
    return head, rest


def curves(runs: Sequence[RunRecord], found: Iterable[tuple[Any, ...]]) -> list[Series]:
    """Series of (run, name, whether of evaluations, and the path to the number in a record).

    With several runs each series has its run's name and colour; in one run each has its own colour.
    """
    series: list[Series] = []
    for run, name, evaluated, *path in found:
        pairs = []
        for record in run.evaluations if evaluated else run.steps:
            value: Any = record
            for key in path:
                value = (value or {}).get(key)
            pairs.append((record["step"], value if isinstance(value, int | float) else None))
        points = known_points(pairs)
        if points:
            color = runs.index(run) if len(runs) > 1 else len(series)
            label = f"{run.name}: {name}" if len(runs) > 1 else name
            series.append(Series(label, points, color, dashed=evaluated, dotted=evaluated))
    return series


def quality(runs: Sequence[RunRecord]) -> tuple[list[Part], list[Chart | None]]:
    """The mean loss of the steps between two lines of the log, and one chart for each metric: scales differ."""
    too_short: list[Part] = [
        Text(
            f"{run.name} has no curves of training: it ended at step {run.num_steps:,}, before the first line of its "
            "log was due; a smaller train_config.log_step_count_steps gives some."
        )
        for run in runs
        if run.end and not run.steps
    ]
    step = runs[0].restored_step if len(runs) == 1 else None
    mark = None if step is None else (f"step {step:,}, restored", step)
    losses: list[tuple[Any, ...]] = []
    metrics: dict[str, list[tuple[Any, ...]]] = {}
    for run in runs:
        losses.append((run, "train", False, "loss"))
        losses += [(run, f"eval {name}", True, "losses", name) for name in run.names["losses"]]
        metrics |= {name: [] for name in (*run.names["metrics"], *run.names["train_metrics"])}
    charts = [line_chart("Loss", "loss (mean over rows)", curves(runs, losses), mark=mark)]
    for name, found in metrics.items():
        for run in runs:
            found += [(run, "train", False, "train_metrics", name), (run, "eval", True, "metrics", name)]
        charts.append(line_chart(name, name, curves(runs, found), mark=mark))
    charts += rate_charts(runs)
    if any(run.calibration_bins for run in runs):
        charts.append(calibration_chart(runs))
    return too_short, charts


def rate_charts(runs: Sequence[RunRecord]) -> Iterator[Chart | None]:
    """Learning rates; those of another order of magnitude have a chart where their shape can be seen."""
    largest: dict[str, float] = {}
    for run in runs:
        for record in run.steps:
            for name, rate in (record.get("learning_rate") or {}).items():
                largest[name] = max(rate or 0.0, largest.get(name, 0.0))
    together: list[list[str]] = []
    for name in sorted(largest, key=lambda name: -largest[name]):
        if together and largest[name] * MAX_RATE_RATIO >= largest[together[-1][0]]:
            together[-1].append(name)
        else:
            together.append([name])
    for group in together:
        title = "Learning rate" if len(together) == 1 else f"Learning rate: {', '.join(group)}"
        series = curves(runs, [(run, name, False, "learning_rate", name) for name in group for run in runs])
        first = len([each for each in series if each.name.endswith(group[0])])
        drawn = [replace(each, dashed=index >= first) for index, each in enumerate(series)]
        yield line_chart(title, "learning rate", drawn, from_zero=True)


def calibration_chart(runs: Sequence[RunRecord]) -> Chart | None:
    """Observed against predicted rates: `calibration_bins` of the final evaluation, by the name of the metric."""
    series = []
    for index, run in enumerate(runs):
        for number, (name, bins) in enumerate(run.calibration_bins.items()):
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


def memory(runs: Sequence[RunRecord]) -> tuple[list[Part], list[Chart | None]]:
    """How near the peak of each run came to its limit; the memory over time, and what each stage held."""
    meters: list[Part] = []
    for run in runs:
        peak, limit = run.memory.get("peak_bytes"), run.start.get("limit_bytes")
        if not peak or not limit:
            continue
        share, stage = f"({peak / limit:.0%})", run.memory.get("peak_stage", "the run")
        meter = {
            "form": "limit",
            "value": f"{run.name}: peak {format_size(peak)} of {format_size(limit)} {share}, in {stage}",
            "width": f"{min(100, 100 * peak / limit):.1f}",
            "is_over": peak > limit,
        }
        meters.append(meter)
    meters += [tables.stages(run) for run in runs if run.memory.get("stages")]
    limits = {run.start.get("limit_bytes") for run in runs}
    limit = limits.pop() if len(limits) == 1 else None
    over_time = line_chart(
        "Memory",
        "memory of the process tree",
        curves(runs, [(run, "process tree", False, "memory_bytes") for run in runs]),
        y_unit="bytes",
        from_zero=True,
        reference=None if limit is None else ("memory.limit", limit),
    )
    names = list(dict.fromkeys(name for run in runs for name in run.memory.get("stages") or {}))
    bars = []
    for color, run in enumerate(runs):
        if not run.memory.get("stages"):
            continue
        stages = [run.memory["stages"].get(name, {}) for name in names]
        if len(runs) == 1:
            bars.append(BarSeries("planned", [stage.get("planned_bytes") for stage in stages], hollow=True))
        measured = [stage.get("measured_bytes") for stage in stages]
        bars.append(BarSeries("measured" if len(runs) == 1 else run.name, measured, color))
    by_stage = bar_chart("Memory by stage", names, "memory held at most", "bytes", bars) if names else None
    return meters, [over_time, by_stage]
