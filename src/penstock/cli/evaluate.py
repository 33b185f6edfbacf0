"""`penstock eval`."""

from typing import Annotated

import typer

from penstock.cli import options
from penstock.cli.errors import one_line_errors

ResultFile = Annotated[
    str | None,
    typer.Option("--eval_result_filename", help="Also write the result to this file of the model_dir."),
]


def evaluate(
    run_file: options.RunFile,
    checkpoint_path: options.CheckpointPath = None,
    eval_input_path: options.EvalInput = None,
    eval_result_filename: ResultFile = None,
    model_dir: options.ModelDir = None,
    memory: options.Memory = None,
    sets: options.Sets = None,
    edit_config_json: options.EditJson = None,
    plain: options.Plain = False,
) -> None:
    """Evaluate a checkpoint of RUN: the latest, the best, or a given one."""
    with one_line_errors(run_file):
        paths = {"eval_input_path": eval_input_path, "model_dir": model_dir, "memory.limit": memory}
        run = options.load(run_file, paths, sets, edit_config_json)
        from penstock.observe.summary import evaluation_summary
        from penstock.run.evaluate import evaluate_checkpoint

        result = evaluate_checkpoint(run, checkpoint_path, result_filename=eval_result_filename, plain=plain)
        print(evaluation_summary(result))
