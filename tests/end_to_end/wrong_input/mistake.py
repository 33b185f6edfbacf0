"""Something that a user did wrong: the form of the cases beside this file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.cli.desk import Change


@dataclass(frozen=True)
class Wrong:
    """One mistake: pieces of the run file, columns of the data, or files."""

    what: str
    run: tuple[Change, ...] = ()
    clicks: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    prepare: Callable[[Path], object] = lambda folder: None
    command: str = "train run.yaml"

    def __str__(self) -> str:
        return self.what
