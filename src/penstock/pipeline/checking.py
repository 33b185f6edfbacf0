"""The command `check`: everything that could be wrong before the first step, found without writing anything."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from penstock.loops.train import no_batch
from penstock.pipeline.accumulation import with_joined_batches
from penstock.pipeline.checkpoint_choice import checkpoint_at
from penstock.pipeline.hooks import checked_evaluator
from penstock.pipeline.requirements import require_for_training, train_section
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.session import computing
from penstock.pipeline.training_parts import build_training
from penstock.pipeline.training_plan import plan_training
from penstock.runtime.world import World


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
    """Open the data, build the model, take one batch through it."""
    require_for_training(run)
    run = with_joined_batches(run)
    start = train_section(run).fine_tune_checkpoint
    if start:
        checkpoint_at(Path(start), "train_config.fine_tune_checkpoint")
    with ExitStack() as stack:
        monitor = stack.enter_context(computing(run))
        training = stack.enter_context(build_training(run, World(), plan_training(run, monitor)))
        checked_evaluator(run, training, monitor)
        batch = next(iter(training.batches), None)
        if batch is None:
            raise no_batch("train_input_path")
        return CheckResult(
            num_files=len(training.source.survey.files),
            num_columns=len(training.source.survey.columns.names),
            num_parameters=sum(parameter.numel() for parameter in training.sharded.module.parameters()),
            first_rows=batch.num_rows,
            first_loss=training.step(batch, training.progress).loss,
            limit_bytes=training.budget.limit_bytes,
            planned_bytes={share.name: share.limit_bytes for share in training.budget.shares.values()},
        )
