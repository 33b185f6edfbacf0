"""Which parameters belong to which part of the dense optimizer."""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from penstock.config.errors import ConfigError, Problem

if TYPE_CHECKING:
    from penstock.optim.sections.dense import PartOptimizer

T = TypeVar("T")


def split_by_part(
    parts: "Sequence[PartOptimizer]", named: Mapping[str, T], path: str
) -> tuple[dict[str, T], list[dict[str, T]]]:
    """What no part takes, and what each takes: the first whose pattern matches the whole name.

    A part that takes nothing would change nothing: an error, all such parts at once.
    """
    rest: dict[str, T] = {}
    taken: list[dict[str, T]] = [{} for _ in parts]
    for name, value in named.items():
        owner = next((i for i, part in enumerate(parts) if re.fullmatch(part.regex_pattern, name)), None)
        (rest if owner is None else taken[owner])[name] = value
    problems = [
        Problem(f"{path}[{index}].regex_pattern", _why_empty(parts, index, named))
        for index, mine in enumerate(taken)
        if not mine
    ]
    if problems:
        raise ConfigError(problems)
    return rest, taken


def _why_empty(parts: "Sequence[PartOptimizer]", index: int, named: Mapping[str, object]) -> str:
    pattern = parts[index].regex_pattern
    matching = [name for name in named if re.fullmatch(pattern, name)]
    if matching:
        return f"'{pattern}' matches only what earlier parts have taken, such as {matching[0]}; put it before them"
    inside = [name for name in named if re.search(pattern, name)]
    if inside:
        whole = f"it must match the whole name: use '{_widened(pattern)}'"
        return f"'{pattern}' matches only a piece of {inside[0]}; {whole}"
    near = difflib.get_close_matches(re.sub(r"[^\w.]", "", pattern), named, n=3, cutoff=0.0)
    tables = "; embedding tables follow sparse_optimizer" if "emb" in pattern else ""
    return f"'{pattern}' matches no parameter; near names: {', '.join(near) or 'none'}{tables}"


def _widened(pattern: str) -> str:
    """The pattern with anything before and behind it, where it does not say so itself."""
    anything = ".*"
    pattern = pattern.removeprefix("^").removesuffix("$")
    pattern = f"({pattern})" if "|" in pattern else pattern
    before = "" if pattern.startswith(anything) else anything
    behind = "" if pattern.endswith(anything) else anything
    return f"{before}{pattern}{behind}"
