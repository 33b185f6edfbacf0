"""What a command prints at its end, and what each stage was to hold and held."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.config.sizes import format_size
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryReport

if TYPE_CHECKING:
    from penstock.run.evaluate import EvaluationResult
    from penstock.run.predict import PredictionResult
    from penstock.run.train import TrainResult

Lines = list[tuple[str, str]]
FIXED = "memory.limit"
"""The setting of stages that no key of their own makes smaller."""


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
    lines: Lines = []
    if attainable_auc is not None:
        best = f"where {attainable_auc:.4f} is the best that any model can reach on these rows"
        lines.append(("test AUC", f"{result.metrics['auc']:.4f}, {best}"))
    done = counted(result.steps, "step"), counted(result.epochs, "epoch"), counted(result.rows, "row")
    lines.append(("trained", ", ".join(done)))
    if result.num_bad_rows:
        lines.append(bad_rows_line(result))
    if result.skipped_batches:
        skipped, where = counted(result.skipped_batches, "batch", "batches"), result.model_dir / "nonfinite"
        lines.append(("skipped", f"{skipped} whose loss was not finite; see {where}"))
    if result.overflowed_batches:
        overflowed = counted(result.overflowed_batches, "batch", "batches")
        lines.append(("passed over", f"{overflowed} with gradients too large for FP16"))
    if result.stopped_because:
        lines.append(("stopped", result.stopped_because))
    if result.restored_step is not None:
        to_its_end = "the best one, after a run to its end; eval and predict take it"
        why = "which eval and predict take" if result.stopped_because else to_its_end
        lines.append(("restored", f"step-{result.restored_step}, {why}"))
    if result.trained_rows and result.seconds:  # not where a run had come to its end before
        rate = result.trained_rows / result.seconds
        timed = f"over {result.seconds:.1f} s, evaluation and saving included"
        lines.append(("speed", f"{rate:,.0f} rows/s {timed}"))
    if result.shuffle:
        mixed = f"{result.shuffle['block_coverage']:.0%} of the blocks that an ideal shuffle would"
        if "label_autocorrelation" in result.shuffle:
            mixed += f"; neighbouring labels correlate by {result.shuffle['label_autocorrelation']:.3f}"
        lines.append(("shuffle", f"a batch draws on {mixed}"))
    if result.advice is not None:
        lines.append(("advice", result.advice))
    evaluation = "nothing was evaluated"
    if result.evaluated_step is not None:
        of_step = "" if result.evaluated_step == result.steps else f"of step {result.evaluated_step:,}: "
        evaluation = of_step + numbers({**result.losses, **result.metrics}, result.remarks)
    lines.append(("eval", evaluation))
    if result.best_step not in (None, result.steps, result.restored_step):
        best = f"step-{result.best_step}; eval and predict take it with --checkpoint_path best"
        lines.append(("best", best))
    lines.append(("memory", memory_line(result.memory)))
    lines += zip(itertools.chain(["by stage"], itertools.repeat("")), use_lines(result.stages), strict=False)
    lines.append(("run", f"{result.model_dir} (checkpoint {result.checkpoint.name})"))
    lines += [] if result.report is None else [("report", str(result.report))]
    if result.exit_code:
        lines.append(("stopped", "by a signal; saved. Go on with --continue_train"))
    return aligned(lines)


def bad_rows_line(result: "TrainResult | EvaluationResult") -> tuple[str, str]:
    """How many rows were left out, and where they are."""
    left_out = f"{counted(result.num_bad_rows, 'row')} left out as unusable"
    return "bad rows", left_out if result.bad_rows is None else f"{left_out}; see {result.bad_rows}"


def evaluation_summary(result: "EvaluationResult") -> str:
    evaluation = result.evaluation
    return aligned(
        [
            ("checkpoint", str(result.checkpoint)),
            ("rows", f"{evaluation.rows:,} in {result.seconds:.1f} s"),
            *([bad_rows_line(result)] if result.num_bad_rows else []),
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


# --- Memory of stages ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StageUse:
    name: str
    planned_bytes: int
    measured_bytes: int | None = None
    """The most that it held; None before the start, and where it cannot be told apart from others."""
    setting: str = FIXED
    """The key of the run file that makes it smaller."""


def planned_use(budget: MemoryBudget) -> list[StageUse]:
    """The plan, before the start; what nobody was given comes last."""
    shares = budget.shares.values()
    stages = [StageUse(share.name, share.limit_bytes, None, share.setting) for share in shares]
    return [*stages, StageUse("free", budget.unshared_bytes)]


def measured_use(budget: MemoryBudget, report: MemoryReport, model_bytes: int) -> list[StageUse]:
    """The plan beside what was measured.

    Stages of the data path count what they lease. The process is what was there when the plan was made, the model what
    building it added; what is left of the peak is counted for the step: activations, gradients, and what allocators
    keep. Peaks of stages need not come at one time: where together they are more than the peak of all, nothing is left
    to tell of the step.
    """
    measured = {name: share.peak_bytes for name, share in budget.shares.items()}
    measured |= {"process": budget.shares["process"].limit_bytes, "model": model_bytes}
    if "worker processes" in measured:
        measured["worker processes"] = report.started_peak_bytes
    measured.pop("step", None)
    rest = report.peak_bytes - sum(measured.values())
    if rest > 0:
        measured["step"] = rest
    return [
        StageUse(share.name, share.limit_bytes, measured.get(share.name), share.setting)
        for share in budget.shares.values()
    ]


def largest(stages: Sequence[StageUse]) -> StageUse | None:
    """The stage that held most, of those that a setting of their own can make smaller."""
    candidates = [stage for stage in stages if stage.setting != FIXED and stage.measured_bytes]
    return max(candidates, key=lambda stage: stage.measured_bytes or 0, default=None)


def use_lines(stages: Sequence[StageUse]) -> list[str]:
    """A table for the terminal: sizes stand right, words left; a column that is empty is left out.

    Below what was measured, how to take less.
    """
    rows = [("stage", "planned", "measured", "set by")]
    for stage in stages:
        measured = "" if stage.measured_bytes is None else format_size(stage.measured_bytes)
        rows.append((stage.name, format_size(stage.planned_bytes), measured, stage.setting))
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    aligned = []
    for name, *cells in columns:
        width, side = max(map(len, [name, *cells])), ">" if name in ("planned", "measured") else "<"
        aligned.append([f"{cell:{side}{width}}" for cell in (name, *cells)])
    lines = ["  ".join(line).rstrip() for line in zip(*aligned, strict=True)]
    most = largest(stages)
    if most is not None and most.measured_bytes is not None:
        smaller = "leave out" if most.setting.startswith(("metrics.", "train_metrics.")) else "lower"
        size = format_size(most.measured_bytes)
        lines.append(f"{most.name} holds most ({size}); to take less, {smaller} {most.setting}")
    elif any(stage.measured_bytes is not None for stage in stages):
        lines.append("no stage holds anything that a setting could make smaller")
    return lines
