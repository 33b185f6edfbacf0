"""`penstock sample-data`."""

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.errors import one_line_errors


def sample_data(
    out: Annotated[Path, typer.Option("--out", help="An empty or new folder.")],
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows of all splits together.")] = 1_000_000,
    kind: Annotated[str, typer.Option("--kind", help="clicks, criteo or game.")] = "clicks",
    file_format: Annotated[
        str | None, typer.Option("--format", help="parquet (default) or csv; games have a form of their own.")
    ] = None,
    files: Annotated[
        int | None,
        typer.Option(
            "--files", min=1, help="Files per split: 4 unless given; of games one for each 500 rows."
        ),
    ] = None,
    row_group_rows: Annotated[
        int | None, typer.Option("--row_group_rows", min=1, help="Rows per row group: 65,536 unless given.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed gives other data.")] = 0,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace sample data written before.")
    ] = False,
) -> None:
    """Write data with a known answer: labels come from a planted model, so the best possible score is known."""
    with one_line_errors():
        from penstock.prep.sample_data.write import write_sample_data
        from penstock.runtime.progress import ProgressLogger

        with ProgressLogger("sample data", "rows", rows) as progress:
            summary = write_sample_data(
                kind,
                rows,
                out,
                format=file_format,
                num_files=files,
                row_group_rows=row_group_rows,
                seed=seed,
                overwrite=overwrite,
                on_rows=progress.advance,
            )
        print(summary.describe())
