"""The demonstration: data with a known answer, a model, and how near it comes."""

import logging
import shutil
from dataclasses import dataclass
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.prep.sample_data.summary import read_summary
from penstock.prep.sample_data.write import write_sample_data
from penstock.run.run_file import load_run
from penstock.run.train import TrainResult, train
from penstock.training.model_dir import ModelDir

logger = logging.getLogger(__name__)

MODEL_DIR = Path("runs/demo")
"""The demonstration's own: it is replaced each time, so it is nobody else's."""


@dataclass(frozen=True, slots=True)
class DemoResult:
    """What was trained, and the AUC that no model can pass."""

    trained: TrainResult
    attainable_auc: float


def run_demo(run_file: Path, data: Path, num_rows: int, plain: bool) -> DemoResult:
    """Make data, train, evaluate. Data of an earlier demonstration are used again, its run is replaced."""
    if not run_file.is_file():
        raise ConfigError(f"{run_file} is not there; run the demonstration from the folder of the repository")
    if (data / "sample.json").exists():
        logger.info("1/2  sample data: already in %s", data)
    else:
        logger.info("1/2  sample data: %s rows into %s", f"{num_rows:,}", data)
        write_sample_data("clicks", num_rows, data)
    run = load_run(
        run_file,
        {
            "train_input_path": f"{data}/train/*.parquet",
            "eval_input_path": f"{data}/test/*.parquet",
            "model_dir": str(MODEL_DIR),
        },
    )
    forget_earlier_run(ModelDir(MODEL_DIR))
    logger.info("2/2  training %s", run_file)
    trained = train(run, plain=plain)
    attainable = read_summary(data).splits["test"].labels["click"].attainable_auc
    return DemoResult(trained, float("nan") if attainable is None else attainable)


def forget_earlier_run(folder: ModelDir) -> None:
    """The demonstration starts afresh each time; only what looks like a run of ours is removed."""
    if folder.checkpoints.is_dir() and folder.run_file.is_file():
        shutil.rmtree(folder.path)
