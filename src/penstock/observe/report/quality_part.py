"""What the final evaluation holds beyond single numbers: a calibration curve, and the AUC of groups."""

from collections.abc import Sequence
from typing import Any

from penstock.observe.report.axes import Unit
from penstock.observe.report.line_chart import LineChart, draw_lines
from penstock.observe.report.markup import Markup, element, joined
from penstock.observe.report.run_record import RunRecord
from penstock.observe.report.series import Series, known_points
from penstock.observe.report.tables import draw_table

MOST_GROUPS = 50
GROUPED_AUC = "grouped_auc"
"""How the names of metrics begin whose groups are shown; that of a tower follows."""


def calibration_chart(runs: Sequence[RunRecord]) -> Markup | None:
    """Observed against predicted rates of the final evaluation that has them; None where none has.

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


def groups_of_runs(runs: Sequence[RunRecord]) -> list[Markup]:
    """The groups of each run that has some, beside each other."""
    tables = [(run, table) for run in runs if (table := group_table(run))]
    if len(runs) == 1:
        return [table for _, table in tables]
    named = [element("div", element("h3", run.name), table) for run, table in tables]
    return [element("div", *named, class_="beside")] if named else []


def group_table(run: RunRecord) -> Markup | None:
    """The AUC of the largest groups of the final evaluation that has them; None where none has.

    The record's `group_auc` is a list of objects: `group`, `rows`, `auc`. Above the table stands how many groups the
    mean is over.
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
    table = draw_table(["group", "rows", "AUC"], rows, "numbers narrow")
    return joined([element("p", groups_line(run, len(rows)), class_="quiet"), table])


def groups_line(run: RunRecord, num_shown: int) -> str:
    """Which groups are shown, and of how many the mean is, where the evaluation says so."""
    remarks = run.final_evaluation.get("remarks") or {}
    means = [f"{name}: {remark}. " for name, remark in remarks.items() if name.startswith(GROUPED_AUC)]
    shown = "the group" if num_shown == 1 else f"the {num_shown} groups"
    return f"{''.join(means)}Here {'is' if num_shown == 1 else 'are'} {shown} with most rows."


def last_with(run: RunRecord, key: str) -> Any:
    """The value of a key in the final evaluation, or the last before it that has it; None where none has."""
    return next((record[key] for record in reversed(run.final_evaluations) if record.get(key)), None)
