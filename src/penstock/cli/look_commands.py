"""Commands that look and report: init, check, plan, features, report, schema, doctor; and demo, for `make demo`."""

import json
import logging
import shutil
import sys
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import command
from penstock.cli.command import one_line_errors
from penstock.config.errors import ConfigError

if TYPE_CHECKING:
    from penstock.run.run_config import RunConfig

DEMO_DIR = Path("runs/demo")
"""The demonstration's own: it is replaced each time, so it is nobody else's."""
logger = logging.getLogger(__name__)


def init(
    data: Annotated[str, typer.Argument(metavar="DATA", help="A data file, folder or glob of any format.")],
    label: Annotated[
        str | None, typer.Option("--label", metavar="COLUMN", help="What is learned; guessed unless given.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="RUN", help="The run file to write.")] = Path(
        "run.yaml"
    ),
    template: Annotated[
        str | None, typer.Option("--template", help="deepfm or wide_and_deep; chosen unless given.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file.")] = False,
) -> None:
    """Write a run file that trains on DATA: types, ids, intervals and evaluation data from a look at its rows."""
    with one_line_errors():
        from penstock.run.starting_run import init as write_run

        print(write_run(data, out, label=label, template=template, overwrite=overwrite).describe())


def _loaded(
    run_file: command.RunFile,
    train_input_path: command.TrainInput = None,
    eval_input_path: command.EvalInput = None,
    model_dir: command.ModelDir = None,
    epochs: command.Epochs = None,
    lr: command.LearningRate = None,
    batch_size: command.BatchSize = None,
    memory: command.Memory = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    strict: command.Strict = False,
) -> "RunConfig":
    """The run that check and plan look at, by the options that both of them have."""
    keys = {
        "train_input_path": train_input_path,
        "eval_input_path": eval_input_path,
        "model_dir": model_dir,
        "memory.limit": memory,
        "train_config.num_epochs": epochs,
        "data_config.batch_size": batch_size,
    }
    return command.load(run_file, keys, sets, edit_config_json, strict, lr)


def check(run_file: command.RunFile, **options: Any) -> None:
    """Read RUN, open its data, build its model, take one batch; write nothing.

    Of a run file that has only preprocessing, the files are found and the first sample is made.
    """
    with one_line_errors(run_file):
        run = _loaded(run_file, **options)
        command.announce("check", run_file)
        from penstock.run.check import check as check_run
        from penstock.run.check import check_preparation, is_for_preparation, preview_lines

        if is_for_preparation(run):
            print("\n".join(preview_lines(check_preparation(run))))
        else:
            print(check_run(run))


def plan(run_file: command.RunFile, **options: Any) -> None:
    """Say what each stage of RUN will hold, before it starts; write nothing."""
    with one_line_errors(run_file):
        run = _loaded(run_file, **options)
        command.announce("plan", run_file)
        from penstock.run.training import plan as plan_run

        print(plan_run(run))


check.__signature__ = plan.__signature__ = signature(_loaded)  # type: ignore[attr-defined]


def features(
    run_file: command.RunFile,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows whose values are shown.")] = 5,
    train_input_path: command.TrainInput = None,
    sets: command.Sets = None,
    edit_config_json: command.EditJson = None,
    strict: command.Strict = False,
) -> None:
    """Draw what the features of RUN read, and show raw and parsed values of the first rows; write nothing."""
    with one_line_errors(run_file):
        run = command.load(run_file, {"train_input_path": train_input_path}, sets, edit_config_json, strict)
        from penstock.run.feature_view import describe_features

        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(describe_features(run, rows, width))


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
        from penstock.observe.report.page import write_report

        print(write_report(model_dir, others or [], output))


def schema() -> None:
    """Print the JSON Schema of the run file, for editors."""
    with one_line_errors():
        from penstock.config.schema import json_schema
        from penstock.run.run_config import RunConfig

        print(json.dumps(json_schema(RunConfig), indent=2))


def doctor() -> None:
    """Tell what does not fit together on this machine, and the exact fix."""
    with one_line_errors():
        from penstock.runtime.doctor import diagnose

        findings = diagnose()
        for finding in findings:
            print(finding)
        if not all(finding.ok for finding in findings):
            raise typer.Exit(1)


def demo(
    run_file: Annotated[Path, typer.Option("--run_file")] = Path("examples/quickstart.yaml"),
    data: Annotated[Path, typer.Option("--data", help="Where the sample data go, or are.")] = Path(
        "data/demo"
    ),
    rows: Annotated[int, typer.Option("--rows", min=1000)] = 1_000_000,
    plain: command.Plain = False,
) -> None:
    """Generate sample data, train the quickstart, and hold its AUC beside the best attainable one."""
    with one_line_errors():
        from penstock.prep.sample_data.blocks import read_summary
        from penstock.prep.sample_data.write import write_sample_data
        from penstock.run.run_config import load_run

        if not run_file.is_file():
            problem = "is not there; run the demonstration from the folder of the repository"
            raise ConfigError(f"{run_file} {problem}")
        if (data / "sample.json").exists():
            logger.info("1/2  sample data: already in %s", data)
        else:
            logger.info("1/2  sample data: %s rows into %s", f"{rows:,}", data)
            write_sample_data("clicks", rows, data)
        edits = {"train_input_path": f"{data}/train/*.parquet", "eval_input_path": f"{data}/test/*.parquet"}
        run = load_run(run_file, {**edits, "model_dir": str(DEMO_DIR)})
        if (DEMO_DIR / "checkpoints").is_dir() and (DEMO_DIR / "run.yaml").is_file():  # a run of ours
            shutil.rmtree(DEMO_DIR)
        logger.info("2/2  training %s", run_file)
        from penstock.run.summary import training_summary
        from penstock.run.train import train

        result = train(run, plain=plain)
        attainable = read_summary(data).splits["test"].labels["click"].attainable_auc
        print(training_summary(result, attainable))
