"""The columns of the training data: what each is used for, and what a look at some rows found in it."""

from collections.abc import Sequence
from typing import Any

from penstock.observe.numbers import counted
from penstock.observe.report.markup import Markup, element
from penstock.observe.report.run_record import Record, RunRecord
from penstock.observe.report.tables import draw_table, folded

MOST_OPEN = 40
"""A longer table is folded at first."""
_MOST_TEXT = 24
_SHOWN_PART = 0.05
"""The most frequent value is shown where it is at least this part..."""
_STANDS_OUT = 1.1
"""...and so many times as frequent as if all values were equally frequent."""
_NO_QUANTITIES = ("id_feature ", "grouping ", "session ", "mask ")
"""Uses of columns whose numbers are names."""
_SIGNS = {"exactly": "", "about": "~", "at least": "≥"}


def profiles_of_runs(runs: Sequence[RunRecord]) -> list[Markup]:
    """The table of each run that looked at its data, or why it could not."""
    return [column_part(run, alone=len(runs) == 1) for run in runs if run.data_profile]


def column_part(run: RunRecord, alone: bool) -> Markup:
    """A table, folded where it is long or one of several."""
    profile, whose = run.data_profile, "" if alone else f" of {run.name}"
    columns = profile.get("columns")
    if not columns:
        reason = profile.get("problem", "none was recorded")
        return element("p", f"There is no data profile{whose}: {reason}.", class_="quiet")
    note = element("p", note_of(profile), class_="note quiet")
    is_open = alone and len(columns) <= MOST_OPEN
    return folded(
        f"Data profile{whose}: {counted(len(columns), 'column')}",
        note,
        column_table(columns),
        is_open=is_open,
    )


def note_of(profile: Record) -> str:
    """From which rows the numbers are, and which columns are not here."""
    rows, looked_at = profile.get("rows", 0), profile.get("rows_looked_at", 0)
    if looked_at == rows:
        text = f"From all {rows:,} rows; ~: about."
    else:
        text = f"From {looked_at:,} of {rows:,} rows, from all over the files; ≥: about so many in these rows alone."
    used, shown = profile.get("columns_used", 0), len(profile["columns"])
    if used > shown:
        text += f" The first {shown:,} of {used:,} columns that the run reads."
    return f"{text} Columns that the run does not read are not looked at."


def column_table(columns: Sequence[Record]) -> Markup:
    """One line for each column of the data; what none of them has is left out."""
    lines = [cells_of(column) for column in columns]
    head = [name for name in lines[0] if any(line[name] for line in lines)]
    return draw_table(head, [[line[name] for name in head] for line in lines], "columns")


def cells_of(column: Record) -> dict[str, str]:
    """The cells of one line, by the heads of the table."""
    return {
        "column": str(column.get("column", "")),
        "type": str(column.get("type", "")),
        "used for": ", ".join(column.get("used_for", [])),
        "missing": shown_part(column.get("null_part", 0.0)),
        "distinct": f"{_SIGNS.get(column.get('distinct_is', ''), '')}{column.get('distinct', 0):,}",
        "minimum": shown_value(column.get("min")),
        "maximum": shown_value(column.get("max")),
        "items": items_of(column),
        "most frequent": frequent_value(column),
        "mean": mean_of(column),
    }


def items_of(column: Record) -> str:
    """How long lists are."""
    shortest, longest = column.get("shortest"), column.get("longest")
    if shortest is None or longest is None:
        return ""
    if shortest == longest:
        return f"{longest:,}"
    return f"{shortest:,} to {longest:,}, mean {column.get('mean_length') or 0:.1f}"


def frequent_value(column: Record) -> str:
    """The value that stands out, and its share."""
    part, distinct = column.get("most_frequent_part"), column.get("distinct", 0)
    if part is None or distinct < 2 or part < _SHOWN_PART or part * distinct < _STANDS_OUT:
        return ""
    return f"{shown_value(column.get('most_frequent'))} ({part:.0%})"


def mean_of(column: Record) -> str:
    """Of what is a quantity, not of ids."""
    uses = column.get("used_for", [])
    is_id = all(use.startswith(_NO_QUANTITIES) for use in uses)
    mean = column.get("mean")
    return "" if mean is None or is_id else shown_value(float(mean))


def shown_part(part: float) -> str:
    """A share that is 0 only where nothing is missing."""
    if not part:
        return "0"
    return f"{part:.1%}" if part >= 0.001 else "<0.1%"


def shown_value(value: Any) -> str:
    """A value in a cell; what cannot be printed is a dot."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.5g}"
    text = "".join(character if character.isprintable() else "·" for character in str(value)) or "''"
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"
