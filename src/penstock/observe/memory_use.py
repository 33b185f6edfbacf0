"""What each stage was to hold, and what it held: planned beside measured, and what to lower."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.config.sizes import format_size
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryReport

FIXED = "memory.limit"
"""The setting of stages that no key of their own makes smaller."""


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
    """A table for the terminal: sizes stand right, words left; a column that is empty is left out."""
    rows = [("stage", "planned", "measured", "set by")]
    for stage in stages:
        measured = "" if stage.measured_bytes is None else format_size(stage.measured_bytes)
        rows.append((stage.name, format_size(stage.planned_bytes), measured, stage.setting))
    columns = [column for column in zip(*rows, strict=True) if any(column[1:])]
    aligned = []
    for name, *cells in columns:
        width, side = max(map(len, [name, *cells])), ">" if name in ("planned", "measured") else "<"
        aligned.append([f"{cell:{side}{width}}" for cell in (name, *cells)])
    return ["  ".join(line).rstrip() for line in zip(*aligned, strict=True)]


def what_to_lower(stages: Sequence[StageUse]) -> str:
    most = largest(stages)
    if most is None or most.measured_bytes is None:
        return "no stage holds anything that a setting could make smaller"
    smaller = "leave out" if most.setting.startswith(("metrics.", "train_metrics.")) else "lower"
    return (
        f"{most.name} holds most ({format_size(most.measured_bytes)}); to take less, {smaller} {most.setting}"
    )
