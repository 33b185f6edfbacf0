"""What `inspect` found, for people and for programs."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.config.sizes import format_size

_LEAST_WIDTH = 12
_GAP = "  "


@dataclass(slots=True)
class Inspection:
    """Facts by name, one table, and what the reader should be warned of."""

    kind: str
    facts: dict[str, Any]
    table_name: str = ""
    table: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    """How to read the numbers."""
    shown_table: list[dict[str, str]] | None = None
    """The table as people read it, where that is not the table itself."""

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        named = {self.table_name: self.table} if self.table_name else {}
        notes = {"notes": self.notes} if self.notes else {}
        return {"kind": self.kind, **self.facts, **named, **notes, "warnings": self.warnings}

    def as_text(self, width: int | None = None) -> str:
        """Everything, for a person, in lines of at most `width` characters where that is possible."""
        lines = [self.kind]
        lines += [f"  {name.replace('_', ' ')}: {shown(name, value)}" for name, value in self.facts.items()]
        table = self.table if self.shown_table is None else self.shown_table
        if table:
            lines += ["", *text_table(table, width)]
        lines += [wrapped(f"  {note}", width) for note in self.notes]
        lines += [wrapped(f"warning: {warning}", width) for warning in self.warnings]
        return "\n".join(lines)


def shown(name: str, value: Any) -> str:
    """A fact as a person reads it."""
    if "bytes" in name:
        return format_size(round(value))
    if isinstance(value, float):
        return f"{value:.2%}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {shown(key, count)}" for key, count in value.items())
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value:,}" if isinstance(value, int) else str(value)


def wrapped(text: str, width: int | None) -> str:
    """The text in lines that fit; commands and paths are not broken."""
    if width is None:
        return text
    return textwrap.fill(
        text, max(width, 40), subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def text_table(rows: Sequence[Mapping[str, Any]], width: int | None = None) -> list[str]:
    """Rows under their names, in columns of the width they need, narrowed to fit where they would not."""
    names = list(rows[0])
    cells = [names] + [[cell(row.get(name)) for name in names] for row in rows]
    widths = [max(len(line[index]) for line in cells) for index in range(len(names))]
    left_out: list[str] = []
    if width is not None:
        while len(names) - len(left_out) > 2 and not _fits([min(w, _LEAST_WIDTH) for w in widths], width):
            left_out.insert(0, names[len(widths) - 1])
            widths.pop()
        _narrow(widths, width)
    lines = [_line(line, widths) for line in cells]
    if left_out:
        lines.append(f"  (no room for: {', '.join(left_out)}; see --json)")
    return lines


def _line(texts: Sequence[str], widths: Sequence[int]) -> str:
    cut = [
        text if len(text) <= width else text[: width - 1] + "…"
        for text, width in zip(texts, widths, strict=False)
    ]
    return (_GAP + _GAP.join(text.ljust(width) for text, width in zip(cut, widths, strict=True))).rstrip()


def _fits(widths: Sequence[int], width: int) -> bool:
    return sum(widths) + len(_GAP) * len(widths) <= width


def _narrow(widths: list[int], width: int) -> None:
    """Take from the widest column until all fit."""
    while not _fits(widths, width) and max(widths) > _LEAST_WIDTH:
        widths[widths.index(max(widths))] -= 1


def cell(value: Any) -> str:
    """One cell; what is not known stays a question mark."""
    if value is None:
        return "?"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
