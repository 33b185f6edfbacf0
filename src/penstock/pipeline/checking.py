"""The command `check`: everything that could be wrong before the first step, found without writing anything."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from penstock.loops.step import StepOutcome
from penstock.loops.task_metrics import TaskMetrics
from penstock.loops.train import no_batch
from penstock.pipeline.accumulation import with_joined_batches
from penstock.pipeline.checkpoint_choice import checkpoint_at
from penstock.pipeline.hooks import checked_evaluator
from penstock.pipeline.requirements import require_for_training, train_section
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.session import computing
from penstock.pipeline.tensorboard import warn_of_histograms
from penstock.pipeline.training_parts import build_training
from penstock.pipeline.training_plan import plan_training
from penstock.runtime.world import World
from penstock.tensors.batch import Batch


@dataclass(frozen=True, slots=True)
class CheckResult:
    """What a run would be, and the loss of its first batch."""

    num_files: int
    num_columns: int
    num_parameters: int
    first_rows: int
    first_loss: float
    limit_bytes: int
    planned_bytes: dict[str, int]


def check(run: RunConfig) -> CheckResult:
    """Open the data, build the model, take one batch through it, and one through an evaluation."""
    require_for_training(run)
    run = with_joined_batches(run)
    train = train_section(run)
    if train.fine_tune_checkpoint:
        checkpoint_at(Path(train.fine_tune_checkpoint), "train_config.fine_tune_checkpoint")
    warn_of_histograms(train)
    with ExitStack() as stack:
        monitor = stack.enter_context(computing(run))
        training = stack.enter_context(build_training(run, World(), plan_training(run, monitor)))
        evaluator = checked_evaluator(of_one_batch(run), training, monitor)
        batch = next(iter(training.batches), None)
        if batch is None:
            raise no_batch("train_input_path")
        outcome = training.step(batch, training.progress)
        if outcome.taken:
            try_metrics(training.train_metrics, outcome, batch)
        if evaluator is not None:
            evaluator.evaluate()
        return CheckResult(
            num_files=len(training.source.survey.files),
            num_columns=len(training.source.survey.columns.names),
            num_parameters=sum(parameter.numel() for parameter in training.sharded.module.parameters()),
            first_rows=batch.num_rows,
            first_loss=outcome.loss,
            limit_bytes=training.budget.limit_bytes,
            planned_bytes={share.name: share.limit_bytes for share in training.budget.shares.values()},
        )


def of_one_batch(run: RunConfig) -> RunConfig:
    """The same run, whose evaluations end with their first batch."""
    return run.model_copy(update={"eval_config": run.eval_config.model_copy(update={"num_steps": 1})})


def try_metrics(metrics: TaskMetrics, outcome: StepOutcome, batch: Batch) -> None:
    """Ask of the metrics of training what a step, a line of the log and a checkpoint ask of them."""
    metrics.update(outcome.predictions, batch)
    metrics.compute()
    metrics.remarks()
    metrics.state_dict()
