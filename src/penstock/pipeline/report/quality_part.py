"""What evaluations hold beyond single numbers: a calibration curve, and the AUC of groups."""

from collections.abc import Sequence
from typing import Any

from penstock.pipeline.report.axes import Unit
from penstock.pipeline.report.line_chart import LineChart, draw_lines
from penstock.pipeline.report.markup import Markup
from penstock.pipeline.report.run_record import RunRecord
from penstock.pipeline.report.series import Series, known_points
from penstock.pipeline.report.tables import draw_table

MOST_GROUPS = 50


def calibration_chart(runs: Sequence[RunRecord]) -> Markup | None:
    """Observed against predicted rates of the last evaluation that has them; None where none has.

    The record's `calibration_bins` are, by the name of the metric, lists of one length: `predicted` and `observed`,
    the means of each bin.
    """
    several = len(runs) > 1
    series = []
    for index, run in enumerate(runs):
        for place, (name, bins) in enumerate((last_with(run, "calibration_bins") or {}).items()):
            points = known_points(zip(bins["predicted"], bins["observed"], strict=True))
            if points:
                shown = f"{run.name}: {name}" if several else name
                series.append(Series(shown, points, index if several else place, place > 0, dotted=True))
    if not series:
        return None
    values = [value for each in series for point in each.points for value in point]
    ideal = Series("ideal", [(min(values), min(values)), (max(values), max(values))], color=7, dashed=True)
    chart = LineChart(
        "Calibration", "predicted probability", "observed rate", x_unit=Unit.number, y_unit=Unit.number
    )
    return draw_lines(chart, [*series, ideal])


def group_table(run: RunRecord) -> Markup | None:
    """The AUC of the largest groups of the last evaluation that has them; None where none has.

    The record's `group_auc` is a list of objects: `group`, `rows`, `auc`.
    """
    groups = last_with(run, "group_auc")
    if not groups:
        return None
    largest = sorted(groups, key=lambda group: -group["rows"])[:MOST_GROUPS]
    rows = [
        [
            str(group["group"]),
            f"{group['rows']:,}",
            "one class" if group["auc"] is None else f"{group['auc']:.4f}",
        ]
        for group in largest
    ]
    return draw_table(["group", "rows", "AUC"], rows, "numbers")


def last_with(run: RunRecord, key: str) -> Any:
    """The value of a key in the last evaluation that has it; None where none has."""
    return next((record[key] for record in reversed(run.evaluations) if record.get(key)), None)
