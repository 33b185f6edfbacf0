"""A file that is no longer what was written, and what can be done about it, which depends on where it lies."""

from typing import Self

from penstock.config.errors import DataError


class DamagedFile(DataError):
    """The bytes of a file are missing, or not those that were written."""

    def __init__(self, problem: str, cure: str = "write it again") -> None:
        super().__init__(f"{problem}; {cure}")
        self.problem, self.cure = problem, cure

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.problem, self.cure)


class MissingFile(DamagedFile):
    """The whole file is no longer there."""
