"""Memory by stage: planned beside measured, and the peak of the run beside its limit."""

from collections.abc import Sequence

from penstock.config.sizes import format_size
from penstock.observe.report.axes import Unit
from penstock.observe.report.bar_chart import BarChart, BarSeries, draw_bars
from penstock.observe.report.markup import Markup, element
from penstock.observe.report.run_record import RunRecord

MEASURED_COLOR = 0


def stage_chart(run: RunRecord) -> Markup | None:
    """Planned beside measured; None for a run that has not come to its end."""
    stages = run.memory.get("stages")
    if not stages:
        return None
    chart = BarChart("Memory by stage", list(stages), "memory held at most", Unit.bytes)
    planned = [stage.get("planned_bytes") for stage in stages.values()]
    measured = [stage.get("measured_bytes") for stage in stages.values()]
    return draw_bars(
        chart,
        [
            BarSeries("planned", planned, MEASURED_COLOR, hollow=True),
            BarSeries("measured", measured, MEASURED_COLOR),
        ],
    )


def stages_of_runs(runs: Sequence[RunRecord]) -> Markup | None:
    """What each stage held, run beside run."""
    if len(runs) == 1:
        return stage_chart(runs[0])
    told = [(color, run) for color, run in enumerate(runs) if run.memory.get("stages")]
    names = list(dict.fromkeys(name for _, run in told for name in run.memory["stages"]))
    if not names:
        return None
    series = [
        BarSeries(
            run.name, [run.memory["stages"].get(name, {}).get("measured_bytes") for name in names], color
        )
        for color, run in told
    ]
    return draw_bars(BarChart("Memory by stage", names, "memory held at most", Unit.bytes), series)


def limit_meter(run: RunRecord) -> Markup | None:
    """The peak as a part of the limit."""
    peak, limit = run.memory.get("peak_bytes"), run.limit_bytes
    if not peak or not limit:
        return None
    share = peak / limit
    stage = run.memory.get("peak_stage", "the run")
    text = f"{run.name}: peak {format_size(peak)} of {format_size(limit)} ({share:.0%}), in {stage}"
    bar = element("span", style=f"width:{min(100.0, 100 * share):.1f}%", class_="over" if share > 1 else None)
    return element("div", element("p", text), element("div", bar, class_="meter"), class_="limit")
