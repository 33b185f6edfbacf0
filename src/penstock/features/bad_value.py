"""A value that a feature cannot use, told by its row in the batch.

Features know columns and rows of a batch; the parser knows files. It catches this and says the same with
file and row.
"""

from penstock.config.errors import DataError


class BadValue(DataError):
    """One value of a batch is wrong. `row` counts from the first row of the batch."""

    def __init__(self, column: str, row: int | None, value: object, problem: str) -> None:
        self.column = column
        self.row = row
        self.value = value
        self.problem = problem
        place = "" if row is None else f"row {row} of the batch: "
        subject = "" if value is None else f"value {value!r} "
        super().__init__(f"{place}column '{column}': {subject}{problem}")
