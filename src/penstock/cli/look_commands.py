"""Commands that look and report: check, plan, report, schema, doctor; and demo, which `make demo` runs."""

import json
import logging
import shutil
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli import command
from penstock.cli.command import one_line_errors
from penstock.config.errors import ConfigError

DEMO_DIR = Path("runs/demo")
"""The demonstration's own: it is replaced each time, so it is nobody else's."""
logger = logging.getLogger(__name__)


def check(
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
) -> None:
    """Read RUN, open its data, build its model, take one batch; write nothing.

    Of a run file that has only preprocessing, the files are found and the first sample is made.
    """
    with one_line_errors(run_file):
        keys = {
            "train_input_path": train_input_path,
            "eval_input_path": eval_input_path,
            "model_dir": model_dir,
            "memory.limit": memory,
            "train_config.num_epochs": epochs,
            "data_config.batch_size": batch_size,
        }
        run = command.load(run_file, keys, sets, edit_config_json, strict, lr)
        command.announce("check", run_file)
        from penstock.run.check import check as check_run
        from penstock.run.check import check_preparation, is_for_preparation, preview_lines

        if is_for_preparation(run):
            print("\n".join(preview_lines(check_preparation(run))))
        else:
            print(check_run(run))


def plan(
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
) -> None:
    """Say what each stage of RUN will hold, before it starts; write nothing."""
    with one_line_errors(run_file):
        keys = {
            "train_input_path": train_input_path,
            "eval_input_path": eval_input_path,
            "model_dir": model_dir,
            "memory.limit": memory,
            "train_config.num_epochs": epochs,
            "data_config.batch_size": batch_size,
        }
        run = command.load(run_file, keys, sets, edit_config_json, strict, lr)
        command.announce("plan", run_file)
        from penstock.run.training import plan as plan_run

        print(plan_run(run))


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
