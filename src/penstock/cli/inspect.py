"""`penstock inspect`."""

import json
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.errors import one_line_errors


def inspect(
    path: Annotated[Path, typer.Argument(help="A data file, a folder of them, a checkpoint or a run.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what is in PATH: schema, rows, sizes, warnings."""
    with one_line_errors():
        from penstock.pipeline.inspection import inspect as inspect_path

        found = inspect_path(path)
        print(json.dumps(found.as_dict(), indent=2) if as_json else found.as_text())
