"""`penstock predict`."""

from typing import Annotated

import typer

from penstock.cli import options
from penstock.cli.errors import one_line_errors


def predict(
    run_file: options.RunFile,
    predict_input_path: Annotated[str, typer.Option("--predict_input_path", help="Files to score.")],
    predict_output_path: Annotated[
        str,
        typer.Option("--predict_output_path", help="A .parquet or .csv file, or a folder of Parquet parts."),
    ],
    reserved_columns: Annotated[
        str, typer.Option("--reserved_columns", help="Input columns to keep, separated by commas.")
    ] = "",
    output_columns: Annotated[
        str,
        typer.Option("--output_columns", help="Predictions to write, separated by commas (default: all)."),
    ] = "",
    batch_size: Annotated[int | None, typer.Option("--batch_size", min=1, help="Rows per batch.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Stop after this many rows.")] = None,
    checkpoint_path: options.CheckpointPath = None,
    model_dir: options.ModelDir = None,
    memory: options.Memory = None,
    sets: options.Sets = None,
    edit_config_json: options.EditJson = None,
    plain: options.Plain = False,
) -> None:
    """Score files with a checkpoint of RUN, in input order."""
    with one_line_errors(run_file):
        run = options.load(run_file, {"model_dir": model_dir, "memory.limit": memory}, sets, edit_config_json)
        from penstock.observe.summary import prediction_summary
        from penstock.run.predict import PredictionRequest, predict_files

        request = PredictionRequest(
            input_path=predict_input_path,
            output_path=predict_output_path,
            reserved_columns=names(reserved_columns),
            output_columns=names(output_columns) or None,
            batch_size=batch_size,
            limit=limit,
            checkpoint=checkpoint_path,
        )
        print(prediction_summary(predict_files(run, request, plain=plain)))


def names(text: str) -> list[str]:
    """The names of a comma-separated list."""
    return [name.strip() for name in text.split(",") if name.strip()]
