"""The command `plan`: what a training run will hold, stage by stage, before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.pipeline.accumulation import with_joined_batches
from penstock.pipeline.memory_use import StageUse, planned_use
from penstock.pipeline.requirements import require_for_training
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.session import computing
from penstock.pipeline.training_plan import plan_training


@dataclass(frozen=True, slots=True)
class PlanResult:
    """What a run reads, and how the limit is divided."""

    limit_bytes: int
    stages: Sequence[StageUse]
    num_files: int
    num_rows: int
    row_bytes: int
    num_blocks: int
    shuffle_rows: int
    batches_per_epoch: int | None
    num_workers: str


def plan(run: RunConfig) -> PlanResult:
    """Look at the data, count the model, divide the limit; nothing is allocated and nothing written."""
    require_for_training(run)
    run = with_joined_batches(run)
    with computing(run) as monitor:
        planned = plan_training(run, monitor)
    survey = planned.source.survey
    return PlanResult(
        limit_bytes=planned.budget.limit_bytes,
        stages=planned_use(planned.budget),
        num_files=len(survey.files),
        num_rows=survey.num_rows,
        row_bytes=survey.row_bytes,
        num_blocks=len(survey.blocks),
        shuffle_rows=planned.num_shuffle_rows,
        batches_per_epoch=planned.source.num_batches(run.data_config),
        num_workers=planned.workers_text,
    )
