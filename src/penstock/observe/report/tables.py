"""Rows of text -> a table of the page."""

from collections.abc import Sequence

from penstock.observe.report.markup import Markup, element


def draw_table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> Markup:
    """A table; the first column names the row. It scrolls by itself where it is wider than the page."""
    top = element("tr", *(element("th", cell, scope="col") for cell in head))
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:]))
        for row in rows
    ]
    table = element("table", element("thead", top), element("tbody", *body))
    return element("div", table, class_=f"table {kind}".rstrip())


def folded(title: str, *content: str, is_open: bool = False) -> Markup:
    """What is long and seldom looked at; what is short may be open at first."""
    return element("details", element("summary", title), *content, open="" if is_open else None)
