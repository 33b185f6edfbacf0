"""Evaluations as tables: all of one run, and the final ones of several."""

from collections.abc import Collection, Mapping, Sequence

from penstock.config.sizes import format_size
from penstock.observe.report.curves import names_of, number_at
from penstock.observe.report.markup import Markup, element
from penstock.observe.report.run_record import Record, RunRecord
from penstock.observe.report.tables import draw_table, folded
from penstock.training.best import best_of

MOST_OPEN = 8
"""How many evaluations are shown without being asked for."""

MOST_STEPS = 5
"""How many steps a remark names."""


def evaluation_table(run: RunRecord) -> Markup | None:
    """Every evaluation, step by step."""
    if not run.evaluations:
        return None
    columns = [(part, name) for part in ("losses", "metrics") for name in names_of(run.evaluations, part)]
    head = ["step", "epoch", "rows", "seconds", *(name for _, name in columns)]
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
    table = draw_table(head, rows, "numbers")
    return folded(f"all evaluations of {run.name}", table, is_open=len(rows) <= MOST_OPEN)


def remark_list(run: RunRecord) -> Markup | None:
    """What evaluations say about their values: why one is undefined, how many groups a mean is over."""
    steps_of: dict[tuple[str, str], list[int]] = {}
    for record in run.evaluations:
        for name, remark in (record.get("remarks") or {}).items():
            steps_of.setdefault((name, remark), []).append(record["step"])
    if not steps_of:
        return None
    items = [
        element("li", f"{name}{at_steps(steps, len(run.evaluations))}: {remark}")
        for (name, remark), steps in steps_of.items()
    ]
    return element("ul", *items, class_="remarks")


def at_steps(steps: Sequence[int], num_evaluations: int) -> str:
    """Of which evaluations something is said; nothing where it is all of them."""
    if len(steps) == num_evaluations:
        return ""
    named = [f"{step:,}" for step in steps[:MOST_STEPS]]
    more = [f"{len(steps) - MOST_STEPS} more"] if len(steps) > MOST_STEPS else []
    return f" at step{'s' * (len(steps) > 1)} {'; '.join(named + more)}"


def final_table(runs: Sequence[RunRecord]) -> Markup:
    """What each run ended with, the best value of each line in bold, then steps, speed and memory."""
    losses = {name for run in runs for name in names_of(run.evaluations, "losses")}
    names = dict.fromkeys(name for run in runs for name in run.final_values())
    rows = [[name, *final_cells(runs, name, losses)] for name in names]
    if names:
        evaluated = [run.final_evaluation.get("step") for run in runs]
        rows.append(
            [
                "evaluated step",
                *(
                    "" if step is None else step_cell(run, step)
                    for run, step in zip(runs, evaluated, strict=True)
                ),
            ]
        )
    rows.append(
        ["steps", *(f"{run.num_steps:,}" + ", stopped early" * bool(run.stopped_because) for run in runs)]
    )
    rows.append(["rows/s", *(_count(run.last.get("rows_per_second")) for run in runs)])
    rows.append(["peak memory", *(_size(run.memory.get("peak_bytes")) for run in runs)])
    return draw_table(["", *(run.name for run in runs)], rows, "numbers")


def final_cells(runs: Sequence[RunRecord], name: str, losses: Collection[str]) -> list[str]:
    """The final values of one name as cells; the best one in bold, where there are others to compare it with."""
    values = [run.final_values().get(name) for run in runs]
    known = [value for value in values if value is not None]
    best = best_of(name, known, losses) if len(set(known)) > 1 else None
    cells = [final_cell(run.final_evaluation, name) for run in runs]
    return [
        element("b", cell) if best is not None and value == best else cell
        for value, cell in zip(values, cells, strict=True)
    ]


def final_cell(record: Record, name: str) -> str:
    """A loss or a metric of an evaluation."""
    return value_cell(record, "losses" if name in record.get("losses", {}) else "metrics", name)


def value_cell(record: Record, part: str, name: str) -> str:
    """A value with what there is to say about it under the pointer; empty where the evaluation does not have it."""
    if name not in (record.get(part) or {}):
        return ""
    remarks: Mapping[str, str] = record.get("remarks") or {}
    value, remark = number_at(record, part, name), remarks.get(name)
    if value is None:
        return element("span", "undefined", class_="undefined", title=remark)
    return f"{value:.5f}" if remark is None else element("span", f"{value:.5f}", title=remark)


def step_cell(run: RunRecord, step: int) -> str:
    """A step; that to which the run went back says so."""
    return f"{step:,}" + (" (restored)" if step == run.restored_step else "")


def _count(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _size(value: int | None) -> str:
    return "" if value is None else format_size(value)
