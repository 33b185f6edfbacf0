"""What a command prints at its end."""

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from penstock.config.sizes import format_size
from penstock.observe.memory_use import use_lines, what_to_lower
from penstock.runtime.memory import MemoryReport

if TYPE_CHECKING:
    from penstock.run.evaluate import EvaluationResult
    from penstock.run.predict import PredictionResult
    from penstock.run.train import TrainResult

Lines = list[tuple[str, str]]


def numbers(values: Mapping[str, float], remarks: Mapping[str, str]) -> str:
    """Names and values on one line; behind a value what there is to say about it."""
    notes = {name: f" ({remark})" for name, remark in remarks.items()}
    return "  ".join(f"{name} {number(value)}{notes.get(name, '')}" for name, value in values.items())


def number(value: float) -> str:
    return "undefined" if math.isnan(value) else f"{value:.4f}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} " + (noun if count == 1 else plural or f"{noun}s")


def training_summary(result: "TrainResult", attainable_auc: float | None = None) -> str:
    """Steps, quality, memory and folder of a run; of the demonstration also the AUC that no model can pass."""
    steps, epochs = counted(result.steps, "step"), counted(result.epochs, "epoch")
    lines: Lines = [("trained", ", ".join([steps, epochs, counted(result.rows, "row")]))]
    lines += [*bad_rows_lines(result), *_early_end_lines(result)]
    if result.trained_rows and result.seconds:  # not where a run had come to its end before
        rate = result.trained_rows / result.seconds
        timed = f"over {result.seconds:.1f} s, evaluation and saving included"
        lines.append(("speed", f"{rate:,.0f} rows/s {timed}"))
    if result.advice is not None:
        lines.append(("advice", result.advice))
    evaluation = "nothing was evaluated"
    if result.evaluated_step is not None:
        of_step = "" if result.evaluated_step == result.steps else f"of step {result.evaluated_step:,}: "
        evaluation = of_step + numbers({**result.losses, **result.metrics}, result.remarks)
    lines.append(("eval", evaluation))
    if result.best_step is not None and result.best_step not in (result.steps, result.restored_step):
        best = f"step-{result.best_step}; eval and predict take it with --checkpoint_path best"
        lines.append(("best", best))
    lines.append(("memory", memory_line(result.memory)))
    table = use_lines(result.stages)
    lines += [("by stage", table[0]), *(("", line) for line in [*table[1:], what_to_lower(result.stages)])]
    lines.append(("run", f"{result.model_dir} (checkpoint {result.checkpoint.name})"))
    if result.report is not None:
        lines.append(("report", str(result.report)))
    if result.exit_code:
        lines.append(("stopped", "by a signal; saved. Go on with --continue_train"))
    if result.shuffle:
        mixed = f"{result.shuffle['block_coverage']:.0%} of the blocks that an ideal shuffle would"
        if "label_autocorrelation" in result.shuffle:
            mixed += f"; neighbouring labels correlate by {result.shuffle['label_autocorrelation']:.3f}"
        lines.insert(2, ("shuffle", f"a batch draws on {mixed}"))
    if attainable_auc is not None:
        best = f"where {attainable_auc:.4f} is the best that any model can reach on these rows"
        lines.insert(0, ("test AUC", f"{result.metrics['auc']:.4f}, {best}"))
    return aligned(lines)


def _early_end_lines(result: "TrainResult") -> Lines:
    """Batches that were skipped, and why a run ended before its time; nothing where neither happened."""
    lines = []
    if result.skipped_batches:
        skipped, where = counted(result.skipped_batches, "batch", "batches"), result.model_dir / "nonfinite"
        lines.append(("skipped", f"{skipped} whose loss was not finite; see {where}"))
    if result.overflowed_batches:
        overflowed = counted(result.overflowed_batches, "batch", "batches")
        lines.append(("passed over", f"{overflowed} with gradients too large for FP16"))
    if result.stopped_because:
        lines.append(("stopped", result.stopped_because))
    if result.restored_step is not None:
        why = "which eval and predict take"
        if not result.stopped_because:
            why = "the best one, after a run to its end; eval and predict take it"
        lines.append(("restored", f"step-{result.restored_step}, {why}"))
    return lines


def bad_rows_lines(result: "TrainResult | EvaluationResult") -> Lines:
    """How many rows were left out, and where they are; nothing where every row was used."""
    if not result.num_bad_rows:
        return []
    left_out = f"{counted(result.num_bad_rows, 'row')} left out as unusable"
    return [("bad rows", left_out if result.bad_rows is None else f"{left_out}; see {result.bad_rows}")]


def evaluation_summary(result: "EvaluationResult") -> str:
    evaluation = result.evaluation
    return aligned(
        [
            ("checkpoint", str(result.checkpoint)),
            ("rows", f"{evaluation.rows:,} in {result.seconds:.1f} s"),
            *bad_rows_lines(result),
            ("eval", numbers({**evaluation.losses, **evaluation.metrics}, evaluation.remarks)),
            ("memory", memory_line(result.memory)),
        ]
    )


def prediction_summary(result: "PredictionResult") -> str:
    return aligned(
        [
            ("checkpoint", str(result.checkpoint)),
            ("rows", f"{result.rows:,} in {result.seconds:.1f} s"),
            ("memory", memory_line(result.memory)),
            ("written", str(result.output)),
        ]
    )


def memory_line(memory: MemoryReport) -> str:
    return (
        f"peak {format_size(memory.peak_bytes)} of {format_size(memory.limit_bytes)} (in {memory.peak_stage}); "
        f"{format_size(memory.start_bytes)} of it are python, torch and torchrec, just by being imported"
    )


def aligned(lines: Lines) -> str:
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name.ljust(width)}  {text}".rstrip() for name, text in lines)
