"""How fast a model trains from files, and what watching it costs.

    python benchmarks/train_rate.py [--rows 400000] [--rounds 11] [--work DIR]

DeepFM of examples/deepfm_criteo.config on Criteo-like rows in Parquet files. From files in batches of 8,192 rows, as in
data_rate.py (smaller ones cost more Python for a row: at 2,048 it is 0.94); watched in those of the example, 2,048.

| way | against | bar |
|---|---|---|
| from files | the same steps on batches that are in memory already | 0.95 |
| train metrics every step, a log line every 10, all scalars of TensorBoard | a run with none of these | 0.97 |

Ways take turns, round after round. The second pair are two runs side by side on batches in memory, with all who listen
to a `penstock.train`; turns are of some steps each, and many: so small a difference is lost in the noise of few.
"""

import argparse
import itertools
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from measuring import criteo
from measuring.rounds import alternate, report

import penstock
from penstock.checkpoint import CheckpointStore
from penstock.run.session import Session, computing
from penstock.run.train import build_checkpoints, build_trainer, write_header
from penstock.run.training import Training, build_training, plan_training
from penstock.runtime.world import StopRequest
from penstock.tensors.batch import Batch
from penstock.training.callbacks import Control
from penstock.training.events import TrainingProgress
from penstock.training.model_dir import ModelDir
from penstock.training.step import FinishedStep

DATA_BAR, WATCHING_BAR = 0.95, 0.97
TURN_STEPS, TURNS = 20, 12
QUIET = {"train_config.use_tensorboard": False, "train_config.log_step_count_steps": 1_000_000}
WATCHED = {
    "train_config.log_step_count_steps": 10,
    "train_config.tensorboard_summaries": ["loss", "learning_rate", "global_gradient_norm"],
    "model_config.train_metrics": [
        {"auc": {}, "decay_step": 10},
        {"log_loss": {}, "decay_step": 10},
        {"calibration": {}, "decay_step": 10},
    ],
}


def main() -> int:
    """Measure, print, and fail below a bar."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--work", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.work) as folder:
        path = criteo.write_parquet(Path(folder) / "parquet", options.rows, num_files=4)
        edits = {"train_input_path": path, "eval_input_path": ""}
        passed = [
            data_path(edits | {"data_config.batch_size": 8192}, options.rounds),
            watching(edits | {"model_dir": f"{folder}/run"}, options.rounds),
        ]
    return 0 if all(passed) else 1


def data_path(edits: dict[str, object], rounds: int) -> bool:
    """The same model and the same steps; only where the batches come from differs."""
    run = penstock.load_run(criteo.RUN_FILE, edits)
    with (
        computing(run) as session,
        build_training(run, session, plan_training(run, session)) as training,
    ):
        in_memory = kept(training)
        ways = {"from memory": lambda: trained(training, in_memory), "from files": from_files(training)}
        return report(alternate(ways, rounds), "from files", "from memory", DATA_BAR)


def from_files(training: Training) -> Callable[[], int]:
    """Trains on the next epoch of the files each time."""
    epochs = itertools.count(1)

    def train() -> int:
        training.batches.set_epoch(next(epochs))
        return trained(training, training.batches)

    return train


def kept(training: Training) -> list[Batch]:
    """The batches of the first epoch, taken as fast as a model takes them: a hasty loop would get worker processes."""
    batches: list[Batch] = []
    for batch in training.batches:
        training.step(batch, TrainingProgress())
        batches.append(batch)
    return batches


def trained(training: Training, batches: Iterable[Batch]) -> int:
    """Takes a step with every batch; gives the rows."""
    progress = TrainingProgress()
    for batch in batches:
        training.step(batch, progress)
        progress.step += 1
        progress.rows += batch.num_rows
    return progress.rows


def watching(edits: dict[str, object], rounds: int) -> bool:
    """Two runs side by side that take turns every some steps, so that the machine's mood is the same for both."""
    with ExitStack() as stack:
        session = stack.enter_context(computing(penstock.load_run(criteo.RUN_FILE, edits)))
        ways = {
            name: in_turns(stack, session, edits | settings | {"model_dir": f"{edits['model_dir']}-{name}"})
            for name, settings in (("unwatched", QUIET), ("watched", WATCHED))
        }
        return report(alternate(ways, rounds * TURNS), "watched", "unwatched", WATCHING_BAR)


def in_turns(stack: ExitStack, session: Session, edits: dict[str, object]) -> Callable[[], int]:
    """A run with all that listens to it; each call takes the next steps of it, and gives their rows."""
    run = penstock.load_run(criteo.RUN_FILE, edits)
    training = stack.enter_context(build_training(run, session, plan_training(run, session)))
    folder, progress, plan = ModelDir(Path(run.model_dir)), training.progress, training.plan
    checkpoints = build_checkpoints(run, training, CheckpointStore(folder.checkpoints), folder, None, {})
    stop, control = StopRequest(), Control(training.step.rates)
    header = partial(write_header, run, plan, folder, None, True, time.perf_counter())
    trainer, watchers = build_trainer(run, training, session, checkpoints, header, control, stop=stop)
    for watcher in watchers:
        stack.enter_context(watcher)
    in_memory = itertools.cycle(kept(training))

    def take_steps() -> int:
        rows_before = progress.rows
        for batch in itertools.islice(in_memory, TURN_STEPS):
            trainer.count(FinishedStep(batch, training.step(batch, progress)))
        return progress.rows - rows_before

    return take_steps


if __name__ == "__main__":
    sys.exit(main())
