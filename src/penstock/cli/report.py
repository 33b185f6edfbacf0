"""`penstock report`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.errors import one_line_errors


def report(
    model_dir: Annotated[Path, typer.Argument(metavar="MODEL_DIR", help="The folder of a run.")],
    others: Annotated[
        list[Path] | None, typer.Argument(metavar="[OTHER]...", help="Runs to lay beside it.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", help="Where to write the page; MODEL_DIR/report.html, or comparison.html, if absent."
        ),
    ] = None,
) -> None:
    """Write a page with the curves, memory, data and configuration of a run, or of several beside each other."""
    with one_line_errors():
        from penstock.observe.report.writing import write_report

        print(write_report(model_dir, others or [], output))
