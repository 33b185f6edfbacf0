"""The command `eval`, as a function, and the evaluator that training uses on its way."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, takewhile
from pathlib import Path

import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.data.memory_plan import EVALUATION, share_data_path
from penstock.data.prefetch import Prefetch
from penstock.run.build import (
    METRICS,
    ShardedModel,
    bound_metrics,
    evaluation_metrics,
    group_columns,
    share_metrics,
)
from penstock.run.data import DataSource, scoring_batches
from penstock.run.requirements import require_for_evaluation, scores_by_averages
from penstock.run.restore import open_scoring
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.run.training import Training, evaluation_rows, source_of
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.durable import finite
from penstock.runtime.memory import MemoryReport
from penstock.runtime.progress import ProgressLogger
from penstock.tensors.batch import Batch
from penstock.training.evaluate import Evaluation, calibration_bins, group_auc
from penstock.training.evaluate import evaluate as evaluate_loop
from penstock.training.model_dir import NAMES_OF_A_RUN, ModelDir
from penstock.training.task_metrics import TaskMetrics
from penstock.training.trainer import no_batch


@dataclass(frozen=True, slots=True)
class Evaluator:
    run: RunConfig
    source: DataSource
    sharded: ShardedModel
    budget: MemoryBudget
    session: Session
    during_training: bool = True
    plain: bool = True

    def __call__(self, interrupted: Callable[[], bool] = lambda: False) -> Evaluation | None:
        """One pass over the data, with fresh metrics; None when it was interrupted on the way."""
        options, sharded, peers = self.run.eval_config, self.sharded, self.session.peers
        share = self.budget.shares.get((EVALUATION if self.during_training else "") + METRICS)
        metrics, groups = evaluation_metrics(sharded.model), group_columns(self.run, training=False)
        bound_metrics(metrics, share, evaluation_rows(self.run, self.source))
        counted = TaskMetrics(metrics, groups, collectives=peers, share=share)
        bar = ProgressLogger(
            "eval",
            "batch",
            total=options.num_steps,
            every=options.log_step_count_steps,
            plain=self.plain or self.during_training,
            show_end=not self.during_training,
        )
        averaged = sharded.averaged(scores_by_averages(self.run))
        with self.session.monitor.stage("evaluate"), averaged, counted, self.batches() as batches, bar:
            taken = sharded.moved(islice(batches, options.num_steps))
            evaluation = evaluate_loop(
                sharded.module,
                sharded.model,
                takewhile(lambda _: not interrupted(), taken),
                counted,
                on_batch=lambda _: bar.advance(),
                collectives=peers,
            )
            calibration, group_aucs = calibration_bins(metrics), group_auc(metrics)
        # What the pool keeps for later is not needed before the next evaluation.
        pa.default_memory_pool().release_unused()
        if interrupted():
            return None
        if evaluation.rows == 0:
            raise no_batch("eval_input_path")
        return replace(evaluation, calibration=calibration, group_auc=group_aucs)

    def batches(self) -> Prefetch[Batch]:
        data = self.run.data_config
        return scoring_batches(
            self.source,
            self.budget,
            stage_prefix=EVALUATION if self.during_training else "",
            batch_size=data.resolved_eval_batch_size(),
            drop_remainder=data.drop_remainder,
            pin_memory=data.pin_memory,
        )


def training_evaluator(run: RunConfig, training: Training, session: Session) -> Evaluator | None:
    """The evaluator of a run that evaluates; what is wrong with its data shows now, not after an epoch."""
    if training.plan.evaluation_source is None:
        return None
    evaluator = Evaluator(
        run, training.plan.evaluation_source, training.sharded, training.plan.budget, session
    )
    evaluation_metrics(training.sharded.model)  # what cannot be computed is refused here
    with evaluator.batches() as batches:
        if next(iter(batches), None) is None:
            raise no_batch("eval_input_path")
    return evaluator


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    checkpoint: Path
    step: int
    evaluation: Evaluation
    seconds: float
    memory: MemoryReport
    num_bad_rows: int = 0
    """Rows of the evaluation data that cannot be used and were left out."""
    bad_rows: Path | None = None
    """Where they are, with the reasons."""


def evaluate(run: RunConfig, checkpoint: str | Path | None = None) -> dict[str, float]:
    """Evaluate a checkpoint ('latest', 'best' or a path) on the run's eval_input_path; metrics and losses by name."""
    return evaluate_checkpoint(run, None if checkpoint is None else str(checkpoint)).evaluation.values


def evaluate_checkpoint(
    run: RunConfig, checkpoint: str | None = None, *, result_filename: str | None = None, plain: bool = True
) -> EvaluationResult:
    """Evaluate a checkpoint; with `result_filename`, also write the result into the model_dir."""
    require_for_evaluation(run)
    if result_filename is not None and Path(result_filename).name != result_filename:
        raise ConfigError(
            f"--eval_result_filename: '{result_filename}' is not a plain name; the file goes into the model_dir"
        )
    if result_filename in NAMES_OF_A_RUN:
        raise ConfigError(
            f"--eval_result_filename: '{result_filename}' is what the run itself writes there; choose another name"
        )
    started_at = time.perf_counter()
    with computing(run) as session:
        sharded, opened, budget = open_scoring(
            run, checkpoint, session, run.data_config.resolved_eval_batch_size()
        )
        source = source_of(run, "eval_input_path", ModelDir.of(run.model_dir).path)
        metrics = evaluation_metrics(sharded.model)
        share_metrics(budget, METRICS, metrics, evaluation_rows(run, source))
        share_data_path(budget, {"": source.scanned}, prefetch_bytes=run.data_config.prefetch)
        evaluator = Evaluator(run, source, sharded, budget, session, False, plain)
        evaluation = evaluator(session.exceeds_limit)
    if evaluation is None:
        raise session.limit_exceeded("the evaluation was given up")
    result = EvaluationResult(
        opened.path,
        opened.step,
        evaluation,
        time.perf_counter() - started_at,
        session.monitor.report,
        num_bad_rows=0 if source.quarantine is None else len(source.quarantine),
        bad_rows=None if source.quarantine is None else source.quarantine.path,
    )
    if result_filename:
        facts = {
            "step": result.step,
            "checkpoint": str(result.checkpoint),
            "rows": evaluation.rows,
            "num_bad_rows": result.num_bad_rows,
            "bad_rows": str(result.bad_rows) if result.num_bad_rows else None,
            "metrics": evaluation.metrics,
            "losses": evaluation.losses,
            **({"remarks": evaluation.remarks} if evaluation.remarks else {}),
        }
        folder = ModelDir.of(run.model_dir)
        text = json.dumps(finite(facts), indent=2, allow_nan=False) + "\n"
        folder.write_text(folder.path / result_filename, text)
    return result
