"""`penstock demo`: what `make demo` runs, from nothing to a trained model."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.errors import one_line_errors
from penstock.cli.options import Plain


def demo(
    run_file: Annotated[Path, typer.Option("--run_file")] = Path("examples/quickstart.yaml"),
    data: Annotated[Path, typer.Option("--data", help="Where the sample data go, or are.")] = Path(
        "data/demo"
    ),
    rows: Annotated[int, typer.Option("--rows", min=1000)] = 1_000_000,
    plain: Plain = False,
) -> None:
    """Generate sample data, train the quickstart, and hold its AUC beside the best attainable one."""
    with one_line_errors():
        from penstock.observe.summary import demo_summary
        from penstock.run.demo import run_demo

        print(demo_summary(run_demo(run_file, data, rows, plain)))
