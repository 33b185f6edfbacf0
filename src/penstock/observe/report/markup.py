"""Elements of HTML and SVG as text, with everything escaped that is not an element itself."""

import html
from collections.abc import Iterable


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(tag: str, *children: str, **attributes: object) -> Markup:
    """One element; `class_` and `data_points` stand for class and data-points, and None leaves an attribute out.

    >>> element("td", "a < b", class_="name")
    '<td class="name">a &lt; b</td>'
    """
    words = [
        f' {name.rstrip("_").replace("_", "-")}="{html.escape(shown(value))}"'
        for name, value in attributes.items()
        if value is not None
    ]
    return Markup(f"<{tag}{''.join(words)}>{joined(children)}</{tag}>")


def joined(children: Iterable[str]) -> Markup:
    """Several pieces as one."""
    return Markup(
        "".join(child if isinstance(child, Markup) else html.escape(child, quote=False) for child in children)
    )


def shown(value: object) -> str:
    """A value of an attribute: coordinates with one decimal, which is finer than a pixel."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
