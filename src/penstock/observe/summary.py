"""How results, counts and memory read on a terminal, and what each stage was to hold and held."""

import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.config.sizes import format_size
from penstock.features.value_counts import ValueCounts
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.memory import MemoryReport
from penstock.runtime.progress import WIDTH

Lines = list[tuple[str, str]]
NO_BREAK = "\N{NO-BREAK SPACE}"
"""Stands for a space where a line must not be folded; it is printed as one."""
COMPUTING_STAGES = ("train", "evaluate", "predict")
"""Those of the memory report in which steps are taken."""
FIXED = "memory.limit"
"""The setting of stages that no key of their own makes smaller."""
MAX_RESULTS = 6
"""Values on one line; more are counted."""
LARGE_SHARE = 0.05
"""Unknown values, or rows without a value, as a part of all, from which on they are worth a word."""
REPEATED_LOSSES = {"binary_cross_entropy": "log_loss", "l2_loss": "mean_squared_error"}
"""Losses, and the metrics that are the same number where all rows weigh the same."""


def results(
    metrics: Mapping[str, float], losses: Mapping[str, float], remarks: Mapping[str, str], all_in: str = ""
) -> str:
    """Names and values, metrics first; behind a value what there is to say about it.

    A loss that a metric repeats is not said again under its own name. `all_in` says where all are; without it, here.
    """

    def is_repeated(name: str) -> bool:
        for loss, metric in REPEATED_LOSSES.items():
            if name.startswith(loss) and (same := metrics.get(metric + name.removeprefix(loss))) is not None:
                return math.isclose(losses[name], same, rel_tol=1e-4)
        return False

    values = {**metrics, **{name: value for name, value in losses.items() if not is_repeated(name)}}
    notes = {name: f" ({remark})" for name, remark in remarks.items()}
    shown = [f"{name}{NO_BREAK}{number(value)}{notes.get(name, '')}" for name, value in values.items()]
    if all_in and len(shown) > MAX_RESULTS:
        shown[MAX_RESULTS:] = [f"and {len(shown) - MAX_RESULTS} more: {all_in}"]
    return "  ".join(shown)


def number(value: float) -> str:
    """A loss or metric, in at most ten characters.

    >>> number(0.81397), number(-5113.32), number(86322978816.0)
    ('0.8140', '-5113.3200', '8.632e+10')
    """
    return "undefined" if math.isnan(value) else f"{value:.4f}" if abs(value) < 1e4 else f"{value:.4g}"


def counted(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} " + (noun if count == 1 else plural or f"{noun}s")


def shown_share(share: float) -> str:
    """A part of all: 0% and 100% only where it is nothing or all.

    >>> shown_share(0.0002), shown_share(0.0031), shown_share(0.123), shown_share(0.9999)
    ('<0.1%', '0.3%', '12%', '>99%')
    """
    if not 0.001 <= share <= 0.99:
        return f"{share:.0%}" if share in (0, 1) else "<0.1%" if share < 0.5 else ">99%"
    return f"{share:.1%}" if share < 0.1 else f"{share:.0%}"


def unknown_line(counts: Mapping[str, ValueCounts]) -> str:
    """Which features have values that the model does not know, the largest shares first; empty where none has."""
    found = sorted(
        (each for each in counts.items() if each[1].unknown), key=lambda each: -each[1].unknown_share
    )
    shown = [f"{name} {shown_share(each.unknown_share)} {each.outside}" for name, each in found]
    missing = sorted(
        (each for each in counts.items() if each[1].missing_share >= LARGE_SHARE),
        key=lambda each: -each[1].missing_share,
    )
    shown += [f"{name} missing in {shown_share(each.missing_share)} of the rows" for name, each in missing]
    more = [f"and {len(shown) - MAX_RESULTS} more"] if len(shown) > MAX_RESULTS else []
    return ", ".join(shown[:MAX_RESULTS] + more)


def memory_line(memory: MemoryReport) -> str:
    peak, limit, start = map(format_size, (memory.peak_bytes, memory.limit_bytes, memory.start_bytes))
    return f"peak {peak} of {limit} (in {memory.peak_stage}; {start} by imports alone)"


def aligned(lines: Lines) -> str:
    """Names and texts in two columns, texts folded to the width of a terminal."""
    width = max(len(name) for name, _ in lines) + len("  ")
    return "\n".join(folded(text, name.ljust(width), " " * width) for name, text in lines)


def folded(text: str, head: str = "", indent: str = "") -> str:
    """A text behind its head, in lines that fit a terminal; long words such as paths are not broken.

    A command is folded between its options, as a shell reads it.
    """
    end = " \\" if text.startswith("penstock ") else ""
    if end:
        text = re.sub(r" (?!--)", NO_BREAK, text)
    lines = textwrap.wrap(
        head + text,
        WIDTH - len(end),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return f"{end}\n".join(lines).replace(NO_BREAK, " ")


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
    building it added. What is left of a peak beside all that was leased at once is the step: activations, gradients,
    batches that are being made, and what allocators keep.
    """
    measured = {name: share.peak_bytes for name, share in budget.shares.items()}
    measured |= {"process": budget.shares["process"].limit_bytes, "model": model_bytes}
    if "worker processes" in measured:
        measured["worker processes"] = report.started_peak_bytes
    others = measured["process"] + measured["model"] + measured.get("worker processes", 0)
    computing = [stage for stage in COMPUTING_STAGES if stage in report.stage_peaks]
    beside = [report.stage_peaks[stage] - report.leased_peaks.get(stage, 0) - others for stage in computing]
    measured["step"] = max([0, *beside])
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
