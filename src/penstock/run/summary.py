"""What train, eval and predict print at their end: result, speed, memory, where it is, and what to run next.

Lines beside these five come only where there is something to say, or with --verbose.
"""

from collections.abc import Sequence
from pathlib import Path

from penstock.observe.summary import (
    Lines,
    StageUse,
    aligned,
    counted,
    folded,
    memory_line,
    results,
    unknown_line,
    use_lines,
)
from penstock.run.evaluate import EvaluationResult
from penstock.run.predict import PredictionResult
from penstock.run.train import TrainResult

ALL_RESULTS = "-v"
"""Where those values are that one line has no space for."""
POOR_SHUFFLE = 0.5
"""Blocks that a batch draws on, as a part of those of an ideal shuffle, below which that is worth a line."""


def training_summary(
    result: TrainResult, attainable_auc: float | None = None, *, verbose: bool = False
) -> str:
    """`attainable_auc` is the AUC that no model can pass, where that is known."""
    remarks = dict(result.remarks)
    if attainable_auc is not None:
        remarks["auc"] = f"{attainable_auc:.4f} is attainable"
    found = "nothing was evaluated"
    if result.evaluated_step is not None:
        of_step = "" if result.evaluated_step == result.steps else f"step {result.evaluated_step:,}: "
        found = of_step + results(result.metrics, result.losses, remarks, "" if verbose else ALL_RESULTS)
    done = [counted(result.steps, "step"), counted(result.epochs, "epoch"), counted(result.rows, "row")]
    speed = f"nothing was left to train after {', '.join(done)}"
    if result.trained_rows and result.seconds:
        in_all = " in all" if result.trained_rows < result.rows else ""
        over = f"over {result.seconds:.1f} s"
        speed = f"{rate(result.trained_rows, result.seconds)} {over}; {', '.join(done)}{in_all}"
    page = "" if result.report is None else f", {result.report.name}"
    where = f"{result.model_dir} (checkpoint {result.checkpoint.name}{page})"
    command = predict_command(result.model_dir)
    if result.exit_code:
        command = f"penstock train {result.model_dir / 'run.yaml'} --continue_train"
    return summary(
        [
            ("result", found),
            *remarks_of_training(result, verbose),
            ("speed", speed),
            ("memory", memory_line(result.memory)),
            ("where", where),
            ("next", command),
        ],
        result.stages if verbose else (),
    )


def remarks_of_training(result: TrainResult, verbose: bool) -> Lines:
    """What was not as usual."""
    lines: Lines = []
    if result.num_bad_rows:
        lines.append(bad_rows_line(result))
    if result.skipped_batches:
        skipped, folder = counted(result.skipped_batches, "batch", "batches"), result.model_dir / "nonfinite"
        lines.append(("skipped", f"{skipped} whose loss was not finite; see {folder}"))
    if result.overflowed_batches:
        overflowed = counted(result.overflowed_batches, "batch", "batches")
        lines.append(("skipped", f"{overflowed} with gradients too large for FP16"))
    if result.stopped_because:
        lines.append(("stopped", result.stopped_because))
    if result.exit_code:
        lines.append(("stopped", "by a signal; saved"))
    if result.restored_step is not None:
        lines.append(("restored", f"step-{result.restored_step}, the best one; eval and predict take it"))
    if result.best_step not in (None, result.steps, result.restored_step):
        lines.append(
            ("best", f"step-{result.best_step}; eval and predict take it with --checkpoint_path best")
        )
    lines += [("advice", text) for text in (result.quality_advice, result.advice) if text is not None]
    if result.shuffle and (verbose or result.shuffle["block_coverage"] < POOR_SHUFFLE):
        mixed = f"{result.shuffle['block_coverage']:.0%} of the blocks that an ideal shuffle would"
        if "label_autocorrelation" in result.shuffle:
            mixed += f"; neighbouring labels correlate by {result.shuffle['label_autocorrelation']:.3f}"
        lines.append(("shuffle", f"a batch draws on {mixed}"))
    return lines


def evaluation_summary(
    result: EvaluationResult, checkpoint_path: str | None = None, *, verbose: bool = False
) -> str:
    """`checkpoint_path` is how the command named the checkpoint, if it did."""
    evaluation = result.evaluation
    found = results(evaluation.metrics, evaluation.losses, evaluation.remarks, "" if verbose else ALL_RESULTS)
    return summary(
        [
            ("result", found),
            *([bad_rows_line(result)] if result.num_bad_rows else []),
            *unknown_lines(result),
            ("speed", rows_in_seconds(evaluation.rows, result.seconds)),
            ("memory", memory_line(result.memory)),
            ("where", str(result.checkpoint)),
            ("next", predict_command(result.checkpoint.parent.parent, checkpoint_path)),
        ],
        result.stages if verbose else (),
    )


def prediction_summary(result: PredictionResult, *, verbose: bool = False) -> str:
    return summary(
        [
            ("result", f"{counted(result.rows, 'row')} scored with {result.checkpoint}"),
            *unknown_lines(result),
            ("speed", rows_in_seconds(result.rows, result.seconds)),
            ("memory", memory_line(result.memory)),
            ("where", str(result.output)),
            ("next", f"penstock inspect {result.output}"),
        ],
        result.stages if verbose else (),
    )


def summary(lines: Lines, stages: Sequence[StageUse]) -> str:
    return "\n".join([*map(folded, use_lines(stages) if stages else ()), aligned(lines)])


def rate(num_rows: int, seconds: float) -> str:
    return f"{num_rows / seconds:,.0f} rows/s"


def rows_in_seconds(num_rows: int, seconds: float) -> str:
    """Everything since the command began to work is in it."""
    return f"{rate(num_rows, seconds)} over {seconds:.1f} s, loading included; {counted(num_rows, 'row')}"


def predict_command(model_dir: Path, checkpoint_path: str | None = None) -> str:
    chosen = "" if checkpoint_path is None else f" --checkpoint_path {checkpoint_path}"
    return f"penstock predict {model_dir / 'run.yaml'} --input FILES --output OUT{chosen}"


def unknown_lines(result: EvaluationResult | PredictionResult) -> Lines:
    """What the model does not know, where there is any."""
    line = unknown_line(result.value_counts)
    return [("unknown", line)] if line else []


def bad_rows_line(result: TrainResult | EvaluationResult) -> tuple[str, str]:
    """How many rows were left out, and where they are."""
    left_out = f"{counted(result.num_bad_rows, 'row')} left out as unusable"
    return "bad rows", left_out if result.bad_rows is None else f"{left_out}; see {result.bad_rows}"
