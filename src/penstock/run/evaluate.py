"""The command `eval`, as a function, and the evaluator that training uses on its way."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from pathlib import Path

from penstock.config.errors import ConfigError
from penstock.data.memory_plan import EVALUATION, share_data_path
from penstock.features.value_counts import ValueCounts
from penstock.observe.summary import StageUse, measured_use
from penstock.run.data import DataSource, group_columns, open_batches, source_of
from penstock.run.feature_meaning import trained_kinds
from penstock.run.requirements import require_for_evaluation, scores_by_averages
from penstock.run.restore import CHECKPOINT_WORDS, open_scoring
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.run.training import (
    METRICS,
    ShardedModel,
    Training,
    evaluation_rows,
    metrics_of,
    share_metrics,
)
from penstock.run.unknown_values import warn_of_unknown
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.durable import finite, replace_text
from penstock.runtime.memory import MemoryReport
from penstock.runtime.progress import ProgressLogger
from penstock.training.evaluate import Evaluation, counts_record
from penstock.training.evaluate import evaluate as evaluate_loop
from penstock.training.model_dir import NAMES_OF_A_RUN, ModelDir
from penstock.training.task_metrics import TaskMetrics
from penstock.training.trainer import no_batch


def evaluate_model(
    run: RunConfig,
    source: DataSource,
    sharded: ShardedModel,
    budget: MemoryBudget,
    session: Session,
    interrupted: Callable[[], bool] = lambda: False,
    *,
    during_training: bool = True,
    plain: bool = True,
) -> Evaluation | None:
    """One pass over the data, with fresh metrics; None when it was interrupted on the way."""
    options, peers, averages = run.eval_config, session.peers, sharded.averages
    stage_prefix = EVALUATION if during_training else ""
    metrics = TaskMetrics(
        metrics_of(sharded.model, "metrics"),
        group_columns(run, training=False),
        collectives=peers,
        share=budget.shares.get(stage_prefix + METRICS),
        num_rows=evaluation_rows(run, source),
    )
    bar = ProgressLogger(
        "eval",
        "batch",
        total=options.num_steps,
        every=options.log_step_count_steps,
        plain=plain or during_training,
        show_end=not during_training,
    )
    session.settled_bytes()  # what steps of training left behind is not beside those of evaluation
    with ExitStack() as stack:
        stack.enter_context(session.monitor.stage("evaluate"))
        if averages is not None and scores_by_averages(run):
            stack.enter_context(averages.applied())
        batches = stack.enter_context(open_batches(run.data_config, source, budget, stage_prefix))
        stack.enter_context(bar)
        stack.callback(metrics.reset)
        taken = (batch.to(sharded.device) for batch in islice(batches, options.num_steps))
        evaluation = evaluate_loop(
            sharded.module,
            sharded.model,
            takewhile(lambda _: not interrupted(), taken),
            metrics,
            on_batch=lambda _: bar.advance(),
            collectives=peers,
        )
    session.settled_bytes()
    if interrupted():
        return None
    if evaluation.rows == 0:
        raise no_batch("eval_input_path")
    return evaluation


Evaluator = Callable[..., Evaluation | None]


def training_evaluator(run: RunConfig, training: Training, session: Session) -> Evaluator | None:
    """`evaluate_model` of a run that evaluates; what is wrong with its data shows now, not after an epoch."""
    source, budget = training.plan.evaluation_source, training.plan.budget
    if source is None:
        return None
    with open_batches(run.data_config, source, budget, EVALUATION) as batches:
        if next(iter(batches), None) is None:
            raise no_batch("eval_input_path")
    return partial(evaluate_model, run, source, training.sharded, budget, session)


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    checkpoint: Path
    step: int
    evaluation: Evaluation
    seconds: float
    memory: MemoryReport
    stages: Sequence[StageUse] = ()
    """What each stage was to hold, and what it held."""
    num_bad_rows: int = 0
    """Rows of the evaluation data that cannot be used and were left out."""
    bad_rows: Path | None = None
    """Where they are, with the reasons."""

    @property
    def value_counts(self) -> Mapping[str, ValueCounts]:
        """By feature with a vocabulary or num_buckets: values that the model does not know, and rows without one."""
        return self.evaluation.value_counts


def evaluate(run: RunConfig, checkpoint: str | Path | None = None) -> dict[str, float]:
    """Evaluate a checkpoint ('latest', 'best' or a path) on the run's eval_input_path; metrics and losses by name."""
    result = evaluate_checkpoint(run, None if checkpoint is None else str(checkpoint))
    warn_of_unknown(result.value_counts)
    return result.evaluation.values


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
        if checkpoint in (None, *CHECKPOINT_WORDS):
            # Before anything is kept of the data in a folder that is no run.
            ModelDir(Path(run.model_dir)).require_checkpoints()
        source = source_of(run, "eval_input_path", Path(run.model_dir))
        sharded, opened, budget = open_scoring(run, checkpoint, session, source.largest_batch)
        model_bytes = max(0, session.monitor.sample() - budget.shares["process"].limit_bytes)
        share_metrics(budget, METRICS, metrics_of(sharded.model, "metrics"), evaluation_rows(run, source))
        prefetch_bytes = run.data_config.prefetch
        share_data_path(budget, {"": source.scanned}, prefetch_bytes=prefetch_bytes, by_cost=source.by_cost)
        interrupted, source = session.monitor.must_stop, source.expecting(trained_kinds(opened))
        evaluation = evaluate_model(
            run, source, sharded, budget, session, interrupted, during_training=False, plain=plain
        )
    if evaluation is None:
        raise session.limit_exceeded("the evaluation was given up")
    result = EvaluationResult(
        opened.path,
        opened.step,
        evaluation,
        time.perf_counter() - started_at,
        session.monitor.report,
        measured_use(budget, session.monitor.report, model_bytes),
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
            **({"value_counts": counts} if (counts := counts_record(result.value_counts)) else {}),
        }
        text = json.dumps(finite(facts), indent=2, allow_nan=False) + "\n"
        replace_text(Path(run.model_dir) / result_filename, text)
    return result
