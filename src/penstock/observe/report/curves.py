"""The curves of one run, or of several laid over each other: quality, learning rates, speed, waiting, memory."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from penstock.observe.report.axes import Unit
from penstock.observe.report.line_chart import LineChart, draw_lines
from penstock.observe.report.markup import Markup
from penstock.observe.report.run_record import Record, RunRecord
from penstock.observe.report.series import Reference, Series, known_points

TRAIN_METRICS = "train_metrics"
"""Where a line of the log has the metrics of the rows trained on."""

MOST_APART = 20
"""How many times larger a learning rate may be than another in the same chart."""

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
    return list(filter(None, [loss_chart(runs), *metric_charts(runs), *learning_rate_charts(runs)]))


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
    chart = LineChart("Loss", "step", "loss (mean over rows)")
    return chart_of(chart, runs, series, step_mark=restored_mark(runs))


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
        yield chart_of(LineChart(name, "step", name), runs, series, step_mark=restored_mark(runs))


def learning_rate_charts(runs: Sequence[RunRecord]) -> Iterator[Markup | None]:
    """The rate of each optimizer; those of another size have a chart of their own, where their shape can be seen."""
    names = dict.fromkeys(name for run in runs for name in names_of(run.steps, "learning_rate"))
    rates = {
        name: [of_steps(run, name, color, "learning_rate", name) for color, run in enumerate(runs)]
        for name in names
    }
    largest = {
        name: max((y for _, each in of_name for _, y in each.points), default=0.0)
        for name, of_name in rates.items()
    }
    groups = of_like_size(largest)
    for group in groups:
        title = "Learning rate" if len(groups) == 1 else f"Learning rate: {', '.join(group)}"
        series = [
            (run, replace(each, dashed=place > 0))
            for place, name in enumerate(group)
            for run, each in rates[name]
        ]
        yield chart_of(LineChart(title, "step", "learning rate", from_zero=True), runs, series)


def of_like_size(largest: Mapping[str, float]) -> list[list[str]]:
    """Names whose values can be seen on one axis that begins at 0: none is `MOST_APART` times smaller than the largest.

    >>> of_like_size({"dense": 0.0005, "sparse": 0.05, "part": 0.01})
    [['sparse', 'part'], ['dense']]
    """
    groups: list[list[str]] = []
    for name in sorted(largest, key=lambda name: -largest[name]):
        if groups and largest[name] * MOST_APART >= largest[groups[-1][0]]:
            groups[-1].append(name)
        else:
            groups.append([name])
    return groups


def restored_mark(runs: Sequence[RunRecord]) -> Reference | None:
    """The step that a single run went back to, where it did."""
    step = runs[0].restored_step if len(runs) == 1 else None
    return None if step is None else Reference(f"step {step:,}, restored", step)


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
    step_mark: Reference | None = None,
) -> Markup | None:
    """The chart of those series that have points; None where none has.

    With several runs each series has its run's name and colour; in one run each has a colour of its own.
    """
    known = [(run, each) for run, each in series if each.points]
    drawn = [
        replace(each, color=index) if len(runs) == 1 else replace(each, name=f"{run.name}: {each.name}")
        for index, (run, each) in enumerate(known)
    ]
    return draw_lines(chart, drawn, reference, step_mark) if drawn else None


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
