"""The curves of one run, or of several laid over each other: quality, learning rates, speed, waiting, memory."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from penstock.pipeline.report.axes import Unit
from penstock.pipeline.report.line_chart import LineChart, draw_lines
from penstock.pipeline.report.markup import Markup
from penstock.pipeline.report.run_record import Record, RunRecord
from penstock.pipeline.report.series import Reference, Series, known_points

TRAIN_METRICS = "train_metrics"
"""Where a line of the log has the metrics of the rows trained on."""

STEP_CHARTS = {
    "rows_per_second": LineChart("Throughput", "step", "rows per second", y_unit=Unit.count, from_zero=True),
    "waiting_share": LineChart(
        "Waiting against computing",
        "step",
        "waiting (the rest is computing)",
        y_unit=Unit.share,
        from_zero=True,
        filled=True,
        top=1.0,
    ),
    "cpu_share": LineChart(
        "Processor", "step", "share of the cores in use", y_unit=Unit.share, from_zero=True
    ),
    "read_bytes_per_second": LineChart(
        "Reading from disk", "step", "bytes per second", y_unit=Unit.bytes, from_zero=True
    ),
    "device_memory_bytes": LineChart(
        "Memory of the device", "step", "bytes", y_unit=Unit.bytes, from_zero=True
    ),
}
"""What a line of the log has as one number -> the chart of it."""


def quality_charts(runs: Sequence[RunRecord]) -> list[Markup]:
    """Losses, then each metric, then learning rates."""
    return list(filter(None, [loss_chart(runs), *metric_charts(runs), learning_rate_chart(runs)]))


def speed_charts(runs: Sequence[RunRecord]) -> list[Markup]:
    """Rows per second, waiting, and what else the log has of the machine."""
    return list(filter(None, (step_chart(runs, key, chart) for key, chart in STEP_CHARTS.items())))


def loss_chart(runs: Sequence[RunRecord]) -> Markup | None:
    """The mean loss of the steps between two lines, and the losses of evaluations."""
    series = []
    for color, run in enumerate(runs):
        evaluated = names_of(run.evaluations, "losses")
        series.append(of_steps(run, "train", color, "loss"))
        series += [of_evaluations(run, f"eval {name}", color, "losses", name) for name in evaluated]
    return chart_of(LineChart("Loss", "step", "loss (mean over rows)"), runs, series)


def metric_charts(runs: Sequence[RunRecord]) -> Iterator[Markup | None]:
    """One chart for each metric: scales differ."""
    names = dict.fromkeys(
        name
        for run in runs
        for name in [*names_of(run.evaluations, "metrics"), *names_of(run.steps, TRAIN_METRICS)]
    )
    for name in names:
        series = []
        for color, run in enumerate(runs):
            series.append(of_steps(run, "train", color, TRAIN_METRICS, name))
            series.append(of_evaluations(run, "eval", color, "metrics", name))
        yield chart_of(LineChart(name, "step", name), runs, series)


def learning_rate_chart(runs: Sequence[RunRecord]) -> Markup | None:
    """The rate of each optimizer."""
    series = [
        of_steps(run, name, color, "learning_rate", name, dashed=place > 0)
        for color, run in enumerate(runs)
        for place, name in enumerate(names_of(run.steps, "learning_rate"))
    ]
    return chart_of(LineChart("Learning rate", "step", "learning rate", from_zero=True), runs, series)


def step_chart(runs: Sequence[RunRecord], key: str, chart: LineChart) -> Markup | None:
    """One number of the log's lines."""
    name = chart.title.split()[0].lower()
    return chart_of(chart, runs, [of_steps(run, name, color, key) for color, run in enumerate(runs)])


def memory_chart(runs: Sequence[RunRecord]) -> Markup | None:
    """The process tree over the steps, under its limit."""
    series = [of_steps(run, "process tree", color, "memory_bytes") for color, run in enumerate(runs)]
    limits = {run.limit_bytes for run in runs}
    limit = limits.pop() if len(limits) == 1 else None
    reference = None if limit is None else Reference("memory.limit", limit)
    chart = LineChart("Memory", "step", "memory of the process tree", y_unit=Unit.bytes, from_zero=True)
    return chart_of(chart, runs, series, reference)


def chart_of(
    chart: LineChart,
    runs: Sequence[RunRecord],
    series: Sequence[tuple[RunRecord, Series]],
    reference: Reference | None = None,
) -> Markup | None:
    """The chart of those series that have points; None where none has.

    With several runs each series has its run's name and colour; in one run each has a colour of its own.
    """
    known = [(run, each) for run, each in series if each.points]
    drawn = [
        replace(each, color=index) if len(runs) == 1 else replace(each, name=f"{run.name}: {each.name}")
        for index, (run, each) in enumerate(known)
    ]
    return draw_lines(chart, drawn, reference) if drawn else None


def of_steps(
    run: RunRecord, name: str, color: int, *path: str, dashed: bool = False
) -> tuple[RunRecord, Series]:
    """One number of each line of the log."""
    points = known_points((record["step"], number_at(record, *path)) for record in run.steps)
    return run, Series(name, points, color, dashed)


def of_evaluations(run: RunRecord, name: str, color: int, *path: str) -> tuple[RunRecord, Series]:
    """One number of each evaluation."""
    points = known_points((record["step"], number_at(record, *path)) for record in run.evaluations)
    return run, Series(name, points, color, dashed=True, dotted=True)


def number_at(record: Record, *path: str) -> float | None:
    """A number of a record, or of a part of it; None where it is not there."""
    found: Any = record
    for key in path:
        found = (found or {}).get(key)
    return found if isinstance(found, int | float) else None


def names_of(records: Sequence[Record], part: str) -> list[str]:
    """The names of all numbers in a part of the records."""
    return list(dict.fromkeys(name for record in records for name in record.get(part) or {}))
