"""What a command prints at its end."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.config.sizes import format_size
from penstock.observe.memory_use import StageUse, advice, use_lines
from penstock.observe.numbers import counted, numbers
from penstock.runtime.memory import MemoryReport

if TYPE_CHECKING:
    from penstock.run.check import CheckResult
    from penstock.run.demo import DemoResult
    from penstock.run.evaluate import EvaluationResult
    from penstock.run.plan import PlanResult
    from penstock.run.predict import PredictionResult
    from penstock.run.train import TrainResult


def demo_summary(result: "DemoResult") -> str:
    """A run, and its AUC beside the best attainable one."""
    auc = result.trained.metrics["auc"]
    best = f"{auc:.4f}, where {result.attainable_auc:.4f} is the best that any model can reach on these rows"
    return aligned([("test AUC", best), *training_lines(result.trained)])


def training_summary(result: "TrainResult") -> str:
    """Steps, quality, memory and place of a run."""
    return aligned(training_lines(result))


def training_lines(result: "TrainResult") -> list[tuple[str, str]]:
    """The same, line by line."""
    steps, epochs = counted(result.steps, "step"), counted(result.epochs, "epoch")
    lines = [
        ("trained", ", ".join([steps, epochs, counted(result.rows, "row")])),
        *bad_rows_lines(result),
        *early_end_lines(result),
        *speed_lines(result),
        *([("advice", result.advice)] if result.advice is not None else []),
        ("eval", evaluation_line(result)),
        ("memory", memory_line(result.memory)),
        *stage_lines(result.stages),
        ("run", f"{result.model_dir} (checkpoint {result.checkpoint.name})"),
        *([("report", str(result.report))] if result.report is not None else []),
    ]
    if result.shuffle:
        lines.insert(2, ("shuffle", shuffle_line(result.shuffle)))
    if result.best_step is not None and result.best_step not in (result.steps, result.restored_step):
        at = [name for name, _ in lines].index("eval") + 1
        lines.insert(
            at, ("best", f"step-{result.best_step}; eval and predict take it with --checkpoint_path best")
        )
    if result.exit_code:
        lines.append(("stopped", "by a signal; saved. Go on with --continue_train"))
    return lines


def speed_lines(result: "TrainResult") -> list[tuple[str, str]]:
    """How fast rows were trained; nothing where a run had come to its end before."""
    if not result.trained_rows or not result.seconds:
        return []
    rate = result.trained_rows / result.seconds
    return [("speed", f"{rate:,.0f} rows/s over {result.seconds:.1f} s, evaluation and saving included")]


def early_end_lines(result: "TrainResult") -> list[tuple[str, str]]:
    """Batches that were skipped, and why a run ended before its time; nothing where neither happened."""
    lines = []
    if result.skipped_batches:
        where = result.model_dir / "nonfinite"
        lines.append(("skipped", f"{batches(result.skipped_batches)} whose loss was not finite; see {where}"))
    if result.overflowed_batches:
        lines.append(
            ("passed over", f"{batches(result.overflowed_batches)} with gradients too large for FP16")
        )
    if result.stopped_because:
        lines.append(("stopped", result.stopped_because))
    if result.restored_step is not None:
        lines.append(("restored", restored_line(result.restored_step, result.stopped_because)))
    return lines


def batches(count: int) -> str:
    """How many there are, in words."""
    return "1 batch" if count == 1 else f"{count:,} batches"


def restored_line(step: int, stopped_because: str | None) -> str:
    """Which step a run went back to, and that it had not stopped for it where that is so."""
    if stopped_because:
        return f"step-{step}, which eval and predict take"
    return f"step-{step}, the best one, after a run to its end; eval and predict take it"


def bad_rows_lines(result: "TrainResult | EvaluationResult") -> list[tuple[str, str]]:
    """How many rows were left out, and where they are; nothing where every row was used."""
    if not result.num_bad_rows:
        return []
    left_out = f"{counted(result.num_bad_rows, 'row')} left out as unusable"
    return [("bad rows", left_out if result.bad_rows is None else f"{left_out}; see {result.bad_rows}")]


def shuffle_line(score: Mapping[str, float]) -> str:
    """How well rows were mixed, against an ideal shuffle."""
    line = f"a batch draws on {score['block_coverage']:.0%} of the blocks that an ideal shuffle would"
    if "label_autocorrelation" in score:
        line += f"; neighbouring labels correlate by {score['label_autocorrelation']:.3f}"
    return line


def evaluation_line(result: "TrainResult") -> str:
    """The last evaluation, and of which step it is, where that is not the last."""
    if result.evaluated_step is None:
        return "nothing was evaluated"
    of_step = "" if result.evaluated_step == result.steps else f"of step {result.evaluated_step:,}: "
    return of_step + numbers({**result.losses, **result.metrics}, result.remarks)


def evaluation_summary(result: "EvaluationResult") -> str:
    """Quality of a checkpoint."""
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
    """What was written where."""
    return aligned(
        [
            ("checkpoint", str(result.checkpoint)),
            ("rows", f"{result.rows:,} in {result.seconds:.1f} s"),
            ("memory", memory_line(result.memory)),
            ("written", str(result.output)),
        ]
    )


def check_summary(result: "CheckResult") -> str:
    """What a run would be."""
    planned = ", ".join(f"{name} {format_size(size)}" for name, size in result.planned_bytes.items())
    return aligned(
        [
            ("data", f"{counted(result.num_files, 'file')}, {counted(result.num_columns, 'column')} read"),
            ("model", f"{result.num_parameters:,} parameters"),
            ("first batch", f"{result.first_rows:,} rows, loss {result.first_loss:.4f}"),
            ("memory", f"limit {format_size(result.limit_bytes)}; planned: {planned}"),
            ("check", "all good; nothing was written"),
        ]
    )


def memory_line(memory: MemoryReport) -> str:
    """Peak against limit, and what was there before anything was done."""
    return (
        f"peak {format_size(memory.peak_bytes)} of {format_size(memory.limit_bytes)} (in {memory.peak_stage}); "
        f"{format_size(memory.start_bytes)} of it are python, torch and torchrec, just by being imported"
    )


def stage_lines(stages: Sequence[StageUse]) -> list[tuple[str, str]]:
    """A table of the stages, and what to lower."""
    table = [("", line) for line in use_lines(stages)]
    return [("by stage", table[0][1]), *table[1:], ("", advice(stages))]


def plan_summary(result: "PlanResult") -> str:
    """What a run will hold."""
    batches = "cut by cost" if result.batches_per_epoch is None else f"{result.batches_per_epoch:,} an epoch"
    data = (
        f"{counted(result.num_rows, 'row')} of about {result.row_bytes:,} bytes, in "
        f"{counted(result.num_files, 'file')} and {counted(result.num_blocks, 'block')}"
    )
    shuffled = f"in windows of {result.shuffle_rows:,} rows" if result.shuffle_rows else "no"
    return aligned(
        [
            ("data", data),
            ("batches", batches),
            ("shuffle", shuffled),
            ("workers", result.num_workers),
            ("limit", format_size(result.limit_bytes)),
            *[("" if index else "plan", line) for index, line in enumerate(use_lines(result.stages))],
        ]
    )


def aligned(lines: list[tuple[str, str]]) -> str:
    """Names in one column, what they say in the next."""
    width = max(len(name) for name, _ in lines)
    return "\n".join(f"{name.ljust(width)}  {text}".rstrip() for name, text in lines)
