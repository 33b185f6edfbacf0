"""The table of columns: numbers for programs, short words for people."""

import math
from datetime import date, datetime
from typing import Any

import pyarrow.types as pt

from penstock.prep.profile import ColumnFacts, DataProfile

_SHOWN_PART = 0.05
"""The most frequent value is shown where it is at least this part..."""
_STANDS_OUT = 1.1
"""...and so many times as frequent as if all values were equally frequent."""
_MOST_TEXT = 20


def column_table(profile: DataProfile) -> list[dict[str, Any]]:
    """One row per column, ready for JSON."""
    return [_row(column, profile) for column in profile.columns]


def _row(column: ColumnFacts, profile: DataProfile) -> dict[str, Any]:
    value, part = column.top or (None, None)
    return {
        "column": column.name,
        "type": str(column.type),
        "nulls": column.num_nulls if column.num_rows == profile.num_rows else None,
        "null_part": column.num_nulls / max(1, column.num_rows),
        "distinct": column.distinct,
        "distinct_is": _how_distinct(column, profile),
        "min": plain_value(column.least),
        "max": plain_value(column.most),
        "mean": plain_value(column.mean),
        "mean_length": column.mean_length,
        "most_frequent": plain_value(value),
        "most_frequent_part": part,
    }


def _how_distinct(column: ColumnFacts, profile: DataProfile) -> str:
    if not profile.is_whole:
        return "at least"
    return "exactly" if column.distinct_is_exact else "about"


def shown_columns(profile: DataProfile) -> list[dict[str, str]]:
    """One row per column, for people; columns of the table that say nothing are left out."""
    rows = [_shown(column, profile) for column in profile.columns]
    said = [name for name in (rows[0] if rows else {}) if any(row[name] for row in rows)]
    return [{name: row[name] for name in said} for row in rows]


def _shown(column: ColumnFacts, profile: DataProfile) -> dict[str, str]:
    return {
        "column": column.name,
        "type": short_type(column.type),
        "nulls": _part(column.num_nulls, column.num_rows),
        "distinct": _distinct(column, profile),
        "min": short_value(column.least),
        "max": short_value(column.most),
        "length": "" if column.mean_length is None else f"{column.mean_length:.1f}",
        "most frequent": _frequent(column),
    }


def _frequent(column: ColumnFacts) -> str:
    if column.top is None or column.distinct < 2:
        return ""
    value, part = column.top
    stands_out = part >= _SHOWN_PART and part * column.distinct >= _STANDS_OUT
    return f"{short_value(value)} ({part:.0%})" if stands_out else ""


def _distinct(column: ColumnFacts, profile: DataProfile) -> str:
    about = "" if column.distinct_is_exact else "~"
    count = f"{about}{column.distinct:,}"
    return count if profile.is_whole else f">={count}"


def _part(count: int, total: int) -> str:
    if not count:
        return "0"
    part = count / total
    return f"{part:.1%}" if part >= 0.001 else "<0.1%"


def short_type(kind: Any) -> str:
    """A type in as few characters as tell it.

    >>> import pyarrow as pa
    >>> short_type(pa.list_(pa.int64())), short_type(pa.map_(pa.string(), pa.float32()))
    ('list<int64>', 'map<string,float>')
    """
    if pt.is_map(kind):
        return f"map<{short_type(kind.key_type)},{short_type(kind.item_type)}>"
    if pt.is_fixed_size_list(kind):
        return f"list<{short_type(kind.value_type)}>[{kind.list_size}]"
    if pt.is_list(kind) or pt.is_large_list(kind):
        return f"list<{short_type(kind.value_type)}>"
    if pt.is_dictionary(kind):
        return f"dictionary<{short_type(kind.value_type)}>"
    return str(kind)


def short_value(value: Any) -> str:
    """A value in a cell."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.5g}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ", timespec="seconds")
    text = (value.decode(errors="replace") if isinstance(value, bytes) else str(value)) or "''"
    text = "".join(character if character.isprintable() else "·" for character in text)
    return text if len(text) <= _MOST_TEXT else text[: _MOST_TEXT - 1] + "…"


def plain_value(value: Any) -> Any:
    """A value that JSON can hold."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value.isoformat() if isinstance(value, date) else str(value)
