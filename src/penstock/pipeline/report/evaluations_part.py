"""Evaluations as tables: all of one run, and the last of several."""

from collections.abc import Sequence

from penstock.config.sizes import format_size
from penstock.pipeline.best import SMALLER_IS_BETTER
from penstock.pipeline.report.curves import names_of, number_at
from penstock.pipeline.report.markup import Markup, element
from penstock.pipeline.report.run_record import RunRecord
from penstock.pipeline.report.tables import draw_table, folded


def evaluation_table(run: RunRecord) -> Markup | None:
    """Every evaluation, step by step."""
    if not run.evaluations:
        return None
    columns = [(part, name) for part in ("losses", "metrics") for name in names_of(run.evaluations, part)]
    head = ["step", "epoch", "rows", "seconds", *(name for _, name in columns)]
    rows = [
        [
            f"{record['step']:,}",
            str(record.get("epoch", "")),
            f"{record.get('rows', 0):,}",
            f"{record.get('seconds', 0):.1f}",
            *(_number(number_at(record, part, name)) for part, name in columns),
        ]
        for record in run.evaluations
    ]
    return folded(f"all evaluations of {run.name}", draw_table(head, rows, "numbers"))


def final_table(runs: Sequence[RunRecord]) -> Markup:
    """The last evaluation of each run, the best value of each line in bold, then steps, speed and memory."""
    values = [run.final_values() for run in runs]
    losses = {name for run in runs for name in names_of(run.evaluations, "losses")}
    names = dict.fromkeys(name for each in values for name in each)
    rows = [
        [name, *with_best([each.get(name) for each in values], name in losses or name in SMALLER_IS_BETTER)]
        for name in names
    ]
    rows.append(["steps", *(f"{run.events.get('end', run.last).get('step', 0):,}" for run in runs)])
    rows.append(["rows/s", *(_count(run.last.get("rows_per_second")) for run in runs)])
    rows.append(["peak memory", *(_size(run.memory.get("peak_bytes")) for run in runs)])
    return draw_table(["", *(run.name for run in runs)], rows, "numbers")


def with_best(values: Sequence[float | None], smaller_is_better: bool) -> list[str]:
    """Values as cells; the best one in bold, where there are others to compare it with."""
    known = [value for value in values if value is not None]
    best = (min if smaller_is_better else max)(known) if len(set(known)) > 1 else None
    return [
        element("b", _number(value)) if best is not None and value == best else _number(value)
        for value in values
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.5f}"


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _size(value: int | None) -> str:
    return "" if value is None else format_size(value)
