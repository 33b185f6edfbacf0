"""Commands on a model: train, eval, predict."""

import logging
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli import command
from penstock.cli.command import EXIT_STOPPED, fail, one_line_errors
from penstock.config.errors import ConfigError

logger = logging.getLogger(__name__)

Continue = Annotated[
    bool, typer.Option("--continue_train", "--resume", help="Go on from the newest whole checkpoint.")
]
FineTune = Annotated[
    str | None,
    typer.Option(
        "--fine_tune_checkpoint",
        metavar="PATH",
        help="Start from this model, at step 0: a checkpoint, a run's folder, or RUN/best.",
    ),
]
IgnoreOptimizer = Annotated[
    bool, typer.Option("--ignore_restore_optimizer", help="Continue with the model, but a fresh optimizer.")
]
ParamMap = Annotated[
    str | None,
    typer.Option(
        "--fine_tune_ckpt_param_map",
        help="File with lines 'current old': parameters that --fine_tune_checkpoint knows by another name.",
    ),
]
NewData = Annotated[
    bool, typer.Option("--new_data", help="Go on like --continue_train, but at the first row of new data.")
]
Workers = Annotated[
    int | None, typer.Option("--workers", min=0, help="Processes that parse (data_config.num_workers).")
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Write a trace of ten steps (train_config.is_profiling).")
]
TextConfig = Annotated[
    bool,
    typer.Option("--text_config", help="Also write the final config as protobuf text: model_dir/run.config."),
]
RunFileOption = Annotated[Path, typer.Option("--pipeline_config_path", help="The run file.")]
_OF_TRAIN_ALONE = ("run_file", "epochs", "lr", "batch_size", "workers", "strict", "text_config", "profile")
ResultFile = Annotated[
    str | None,
    typer.Option("--eval_result_filename", help="Also write the result to this file of the model_dir."),
]


def train(
    run_file: command.RunFile,
    continue_train: Continue = False,
    train_input_path: command.TrainInput = None,
    eval_input_path: command.EvalInput = None,
    model_dir: command.ModelDir = None,
    fine_tune_checkpoint: FineTune = None,
    fine_tune_ckpt_param_map: ParamMap = None,
    ignore_restore_optimizer: IgnoreOptimizer = False,
    new_data: NewData = False,
    epochs: command.Epochs = None,
    lr: command.LearningRate = None,
    batch_size: command.BatchSize = None,
    memory: command.Memory = None,
    workers: Workers = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    strict: command.Strict = False,
    text_config: TextConfig = False,
    profile: Profile = False,
    plain: command.Plain = False,
    verbose: command.Verbose = False,
) -> None:
    """Train the run described in RUN, and evaluate it."""
    with one_line_errors(run_file):
        if ignore_restore_optimizer and not (continue_train or new_data):
            raise ConfigError(
                "--ignore_restore_optimizer: is for --continue_train and --new_data; nothing is restored"
            )
        keys = {
            "train_input_path": train_input_path,
            "eval_input_path": eval_input_path,
            "model_dir": model_dir,
            "memory.limit": memory,
            "train_config.fine_tune_checkpoint": fine_tune_checkpoint,
            "train_config.fine_tune_ckpt_param_map": fine_tune_ckpt_param_map,
            "train_config.num_epochs": epochs,
            "data_config.batch_size": batch_size,
            "data_config.num_workers": workers,
            "train_config.is_profiling": "true" if profile else None,
        }
        try:
            run = command.load(run_file, keys, sets, edit_config_json, strict, lr)
            command.announce("train", run_file)
            from penstock.run.summary import training_summary
            from penstock.run.train import train as train_run

            result = train_run(
                run,
                resume=continue_train,
                new_data=new_data,
                restore_optimizer=not ignore_restore_optimizer,
                plain=plain,
            )
        except KeyboardInterrupt:
            # As soon as a run can, it takes Ctrl-C as a request to finish its step and save; before there is nothing.
            fail("stopped before the first step: nothing was trained, and nothing is saved", EXIT_STOPPED)
        if text_config:
            from penstock.config.write import dump_text
            from penstock.runtime.durable import replace_text

            replace_text(Path(run.model_dir) / "run.config", dump_text(run))
        print(training_summary(result, verbose=verbose))
        if result.exit_code:
            raise typer.Exit(result.exit_code)
        if not result.trained_rows:  # a run that is continued behind its end looks like a success
            by_steps = run.train_config is not None and run.train_config.num_steps is not None
            cause = f"train_config.{'num_steps' if by_steps else 'num_epochs'} is reached; raise it"
            if result.stopped_because is not None:
                cause = "early stopping has ended this run; raise train_config.early_stopping.patience"
            logger.warning("nothing was left to train: %s, or give new files with --new_data", cause)


def train_eval(pipeline_config_path: RunFileOption, **options: Any) -> None:
    """The command `train` under the name and the options of older scripts."""
    train(pipeline_config_path, **options)


train_eval.__signature__ = Signature(  # type: ignore[attr-defined]
    [
        Parameter("pipeline_config_path", Parameter.POSITIONAL_OR_KEYWORD, annotation=RunFileOption),
        *(each for each in signature(train).parameters.values() if each.name not in _OF_TRAIN_ALONE),
    ]
)


def evaluate(
    run_file: command.RunFile,
    checkpoint_path: command.CheckpointPath = None,
    eval_input_path: command.EvalInput = None,
    eval_result_filename: ResultFile = None,
    model_dir: command.ModelDir = None,
    memory: command.Memory = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    plain: command.Plain = False,
    verbose: command.Verbose = False,
) -> None:
    """Evaluate a checkpoint of RUN: the latest, the best, or a given one."""
    with one_line_errors(run_file):
        keys = {"eval_input_path": eval_input_path, "model_dir": model_dir, "memory.limit": memory}
        run = command.load(run_file, keys, sets, edit_config_json)
        command.announce("eval", run_file)
        from penstock.run.evaluate import evaluate_checkpoint
        from penstock.run.summary import evaluation_summary

        result = evaluate_checkpoint(run, checkpoint_path, result_filename=eval_result_filename, plain=plain)
        print(evaluation_summary(result, checkpoint_path, verbose=verbose))


def predict(
    run_file: command.RunFile,
    predict_input_path: Annotated[
        str, typer.Option("--predict_input_path", "--input", help="Files to score.")
    ],
    predict_output_path: Annotated[
        str,
        typer.Option(
            "--predict_output_path",
            "--output",
            help="A .parquet or .csv file, or a folder of Parquet parts.",
        ),
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
    checkpoint_path: command.CheckpointPath = None,
    model_dir: command.ModelDir = None,
    memory: command.Memory = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    plain: command.Plain = False,
    verbose: command.Verbose = False,
) -> None:
    """Score files with a checkpoint of RUN, in input order."""
    with one_line_errors(run_file):
        keys = {"model_dir": model_dir, "memory.limit": memory}
        run = command.load(run_file, keys, sets, edit_config_json)
        command.announce("predict", run_file)
        from penstock.run.predict import predict_files
        from penstock.run.summary import prediction_summary

        result = predict_files(
            run,
            predict_input_path,
            predict_output_path,
            reserved_columns=_names(reserved_columns),
            output_columns=_names(output_columns) or None,
            batch_size=batch_size,
            limit=limit,
            checkpoint=checkpoint_path,
            plain=plain,
        )
        print(prediction_summary(result, verbose=verbose))


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]
