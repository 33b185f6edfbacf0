"""Guesses what a user meant by a name that does not exist."""

import difflib
from collections.abc import Iterable

_SHOWN = 12


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that looks most like this one, if any comes close."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, n=1)
    return by_folded[near[0]] if near else None


def hint(name: str, known: Iterable[str]) -> str:
    """A question with the nearest name, or else the list of what is known."""
    names = sorted(known)
    near = nearest_name(name, names)
    if near is not None:
        return f"did you mean '{near}'?"
    if not names:
        return "nothing can be set here"
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"known: {', '.join(names[:_SHOWN])}{more}"
