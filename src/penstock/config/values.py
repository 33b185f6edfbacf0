"""Types of option values that many sections share: numbers in a range, words from a list."""

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field

from penstock.config.nearest import hint

Probability = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1, both included."""

DropoutRatio = Annotated[float, Field(ge=0, lt=1)]
"""The share that is dropped: from 0 to below 1."""


def _joined(paths: Any) -> Any:
    if not isinstance(paths, list | tuple):
        return paths
    wrong = next((path for path in paths if not isinstance(path, str)), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} in the list is no path")
    return ",".join(paths)


Paths = Annotated[str, BeforeValidator(_joined, json_schema_input_type=str | list[str])]
"""Paths with commas between them; in the run file also a list."""


def words(*known: str) -> Any:
    """The annotation of a text field that takes only these words; an empty one is the same as none, and not told.

    An enum would be the plain way for a new field; old text-format files write these words in quotes, which
    makes them strings.
    """

    def check(word: str | None) -> str | None:
        if word is not None and word not in known:
            raise ValueError(f"is '{word}'; {hint(word, filter(None, known))}")
        return word

    return AfterValidator(check)
