"""The cost of a row as the run file writes it: `sum_of_lengths(clicks, carts)`.

Only the text is looked at here, so that reading a run file stays cheap; `costs.py` computes with columns.
"""

import re
from dataclasses import dataclass
from typing import Self

from penstock.config.nearest import hint

FUNCTIONS = {
    "sum_of_lengths": "the lengths of all sequences added up: what grows with every step of every sequence",
    "max_of_lengths": "the length of the longest sequence: what grows with the padded width",
}
"""What an expression may call, and what it gives."""

_CALL = re.compile(r"\s*(?P<function>\w+)\s*\((?P<names>[^()]*)\)\s*")
_EXAMPLE = "write it like sum_of_lengths(clicks, carts)"


@dataclass(frozen=True, slots=True)
class CostExpression:
    """A function over the lengths of sequences, each a feature or a column."""

    function: str
    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> Self:
        """From text; ValueError says what is wrong with it.

        >>> CostExpression.parse("sum_of_lengths(clicks, carts)")
        CostExpression(function='sum_of_lengths', names=('clicks', 'carts'))
        """
        call = _CALL.fullmatch(text)
        if call is None:
            raise ValueError(f"'{text}' is no expression over lengths; {_EXAMPLE}")
        function = call["function"]
        if function not in FUNCTIONS:
            raise ValueError(f"there is no function '{function}'; {hint(function, FUNCTIONS)}")
        names = tuple(name.strip() for name in call["names"].split(","))
        if not all(names):
            raise ValueError(f"'{text}' lacks the name of a sequence; {_EXAMPLE}")
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"'{text}' names '{twice}' twice")
        return cls(function, names)

    def __str__(self) -> str:
        return f"{self.function}({', '.join(self.names)})"
