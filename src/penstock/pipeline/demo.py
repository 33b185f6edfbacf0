"""The demonstration: data with a known answer, a model, and how near it comes."""

import shutil
import sys
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.pipeline.model_dir import ModelDir
from penstock.pipeline.run_files import load_run
from penstock.prep.sample_data import read_summary, write_sample_data


def run_demo(run_file: Path, data: Path, num_rows: int, plain: bool) -> None:
    """Each stage says what it does; data of an earlier demonstration are used again, its run is replaced."""
    if not run_file.is_file():
        raise ConfigError(f"{run_file} is not there; run the demonstration from the folder of the repository")
    if (data / "sample.json").exists():
        say(f"1/3  sample data: already in {data}")
    else:
        say(f"1/3  sample data: {num_rows:,} rows into {data}")
        write_sample_data("clicks", num_rows, data)
    inputs = {"train_input_path": f"{data}/train/*.parquet", "eval_input_path": f"{data}/test/*.parquet"}
    run = load_run(run_file, inputs)
    forget_earlier_run(ModelDir.of(run.model_dir))

    say(f"2/3  training {run_file}")
    from penstock.pipeline.training import train

    result = train(run, plain=plain)

    say("3/3  evaluated on the test split")
    from penstock.pipeline.summary import training_summary

    attainable = read_summary(data).splits["test"].labels["click"].attainable_auc
    print(training_summary(result))
    print(f"test AUC  {result.metrics['auc']:.4f}, where {attainable:.4f} is the best that any model can reach")


def forget_earlier_run(folder: ModelDir) -> None:
    """The demonstration starts afresh each time; only what looks like a run of ours is removed."""
    if folder.checkpoints.is_dir() and folder.run_file.is_file():
        shutil.rmtree(folder.path)


def say(line: str) -> None:
    """A line on stderr, before the work it announces."""
    print(line, file=sys.stderr, flush=True)
