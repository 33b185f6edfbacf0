"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from penstock.run.run_config import RunConfig

# Whoever loads the run file says why it cannot be read, better than the command line would: readable=False.
RunFile = Annotated[
    Path, typer.Argument(metavar="RUN", readable=False, help="The run file: YAML, JSON or protobuf text.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Change a key of the run file; may be repeated."),
]
EditJson = Annotated[
    str | None,
    typer.Option("--edit_config_json", metavar="JSON", help="Changes as one JSON object of path: value."),
]
Strict = Annotated[bool, typer.Option("--strict", help="Keys that have no effect here are errors.")]
ModelDir = Annotated[str | None, typer.Option("--model_dir", help="Where everything of the run goes.")]
TrainInput = Annotated[str | None, typer.Option("--train_input_path", help="Training files.")]
EvalInput = Annotated[str | None, typer.Option("--eval_input_path", help="Evaluation files.")]
Memory = Annotated[str | None, typer.Option("--memory", metavar="SIZE", help="Memory limit, such as 4GiB.")]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines instead of a live bar.")]
CheckpointPath = Annotated[
    str | None,
    typer.Option(
        "--checkpoint_path",
        metavar="PATH",
        help="A checkpoint, 'latest' or 'best' (default: latest), or RUN, RUN/best of another run.",
    ),
]


def run_keys(
    train: str | None, evaluation: str | None, folder: str | None, memory: str | None
) -> dict[str, str | None]:
    """The options that every command on a run has, by the key of the run file that each one sets."""
    paths = {"train_input_path": train, "eval_input_path": evaluation, "model_dir": folder}
    return {**paths, "memory.limit": memory}


def load(run_file: Path, *arguments: Any) -> "RunConfig":
    """The run file with the changes of the command line; imported here, so that `--help` answers at once."""
    from penstock.run.run_file import load_run_of_command

    return load_run_of_command(run_file, *arguments)
