"""How fast a model trains from files, against the same model fed from tensors that are in memory already.

    python benchmarks/train_rate.py [--rows 400000] [--rounds 5] [--work DIR]

DeepFM of examples/deepfm_criteo.config on Criteo-like rows in Parquet files, batches of 2,048 rows, an epoch at a time.
Both
ways take the same steps with the same model, in turns. Bar: 0.95.
"""

import argparse
import itertools
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from measuring import criteo
from measuring.rounds import alternate, report

import penstock
from penstock.loops.progress import TrainingProgress
from penstock.pipeline.session import computing
from penstock.pipeline.training_parts import Training, build_training
from penstock.pipeline.training_plan import plan_training
from penstock.runtime.world import World
from penstock.tensors.batch import Batch

BAR = 0.95


def main() -> int:
    """Measure, print, and fail below the bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        path = criteo.write_parquet(Path(folder) / "parquet", options.rows, num_files=4)
        run = penstock.load_run(criteo.RUN_FILE, {"train_input_path": path, "eval_input_path": ""})
        with computing(run) as monitor, build_training(run, World(), plan_training(run, monitor)) as training:
            in_memory = list(training.batches)
            ways = {
                "from memory": lambda: trained(training, in_memory),
                "from files": from_files(training),
            }
            rates = alternate(ways, options.rounds)
    return 0 if report(rates, "from files", "from memory", BAR) else 1


def from_files(training: Training) -> Callable[[], int]:
    """Trains on the next epoch of the files each time."""
    epochs = itertools.count(1)

    def train() -> int:
        training.batches.set_epoch(next(epochs))
        return trained(training, training.batches)

    return train


def trained(training: Training, batches: Iterable[Batch]) -> int:
    """Takes a step with every batch; gives the rows."""
    progress = TrainingProgress()
    for batch in batches:
        progress.count(batch.num_rows, training.step(batch, progress))
    return progress.rows


if __name__ == "__main__":
    sys.exit(main())
