"""What a run would better change: how it reads, when the model waits for its data, and how long it trains.

Pure functions of what a run has measured. The rules of the step advisor follow docs/tuning.md: nothing is said where
waiting is too little to matter, and worker processes are named only where parsing takes clearly longer than what has to
stay in the training process. Of quality nothing is said that could be noise of the evaluated rows.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.config.sizes import MIB, format_size
from penstock.data.memory_plan import worker_bytes
from penstock.metrics.sections import Best, best_value
from penstock.prep.rewrite import RewriteOptions
from penstock.training.best import smaller_is_better

WORTH_SAYING = 0.2
"""Share of the time spent waiting from which on a change pays."""
ENOUGH_STEPS = 50
"""Steps from which on waiting says something: the first wait for what is loaded and compiled."""
WORKERS_HELP_FROM = 2.0
"""Times that parsing must take what stays in the training process: below it, handing batches over eats the gain."""
SMALL_BATCH_ROWS = 2048
SMALL_BATCH_SECONDS = 0.005
"""Of making a batch: what takes longer takes it for its rows, and as long for the same rows in larger batches."""
LARGE_SHUFFLE_BYTES = 16 * MIB
"""What lies in a processor's cache; beyond it, mixing rows takes most of the data path's time."""
ROW_FORMATS = {"CsvDataset": "CSV files", "JsonDataset": "JSON lines", "TFRecordDataset": "TFRecord files"}
"""Formats of which every column is read for a few, and that Parquet nearly always beats in size and speed."""
MIN_EVALUATIONS = 3
"""With the best one, from which on a trend is one; of two, the change must be `CLEAR` times as large."""
CLEAR = 4.0
MIN_WORSENING = 0.005
"""Of a loss as a part of it, of a metric such as AUC as it is; with few rows 1 / sqrt(rows), to keep noise out."""
MIN_RISE = 0.002
"""Of an AUC that rises while the log loss of the same rows worsens."""
ORDER, PROBABILITIES = ("auc", "grouped_auc"), ("log_loss", "binary_cross_entropy")


@dataclass(frozen=True, slots=True)
class DataPathFacts:
    num_steps: int
    waiting_share: float
    """Of the time of all steps, waiting for data; 0 to 1."""
    reading_seconds: float
    """Of all batches that the training process made: reading, shuffling, cutting and packing."""
    parsing_seconds: float
    """Of the same batches: parsing. What workers parse is not counted."""
    computing_seconds: float
    """Of all steps together: the model."""
    batch_rows: int
    batch_bytes: int
    """Of a record batch."""
    num_workers: int
    num_cores: int
    free_bytes: int
    """What the measured peak leaves of the limit."""
    share_bytes: Mapping[str, int]
    """What each stage was given, by its name."""
    dataset_type: str = "ParquetDataset"


@dataclass(frozen=True, slots=True)
class Advice:
    reason: str
    change: str
    setting: str
    """The key of the run file, or the command, that is to be changed or run."""
    extra_bytes: int = 0
    """What it would take beyond what is taken now; negative: it frees so much."""
    missing_bytes: int = 0
    """How much of it does not fit below memory.limit as it is."""

    def __str__(self) -> str:
        cost = ""
        if self.extra_bytes < 0:
            cost = f" would free about {format_size(-self.extra_bytes)}"
        elif self.extra_bytes:
            cost = f" would take about {format_size(self.extra_bytes)} more"
        if self.extra_bytes > 0 and self.missing_bytes:
            cost += f", which needs memory.limit raised by {format_size(self.missing_bytes)}"
        return f"{self.reason}; {self.change}{cost}"

    def record(self) -> dict[str, str | int]:
        return {"text": str(self), "setting": self.setting, "extra_bytes": self.extra_bytes}


def advise(facts: DataPathFacts) -> Advice | None:
    """The one change that promises most; None where the model hardly waits, or has not taken enough steps to tell."""
    if facts.waiting_share < WORTH_SAYING or facts.num_steps < ENOUGH_STEPS:
        return None
    making_seconds = facts.reading_seconds + facts.parsing_seconds
    # What workers take is not known, so that more of them come before larger batches.
    batches_cost = making_seconds < SMALL_BATCH_SECONDS * facts.num_steps
    if facts.num_workers:
        batches_cost = facts.num_workers >= facts.num_cores
    if 0 < making_seconds < facts.computing_seconds and not facts.num_workers:
        present_bytes = facts.share_bytes.get("prefetch", 0)
        wanted_bytes = max(2 * present_bytes, 4 * facts.batch_bytes)
        cause, setting = "data come fast enough on the whole, but in bursts", "data_config.prefetch"
        change, extra_bytes = f"{setting}: {format_size(wanted_bytes)}", wanted_bytes - present_bytes
    elif facts.batch_rows < SMALL_BATCH_ROWS and batches_cost:
        setting = "data_config.batch_size"
        cause = f"batches of {facts.batch_rows:,} rows are too small for the work that each one costs"
        change = f"{setting}: {4 * facts.batch_rows}"
        extra_bytes = 3 * (facts.share_bytes.get("step", 0) + facts.batch_bytes)
    elif facts.parsing_seconds > facts.reading_seconds or facts.num_workers:
        cause, (change, setting, extra_bytes) = "parsing is the bottleneck", _faster_parsing(facts)
    else:
        is_shuffling = facts.share_bytes.get("shuffle", 0) > LARGE_SHUFFLE_BYTES
        cause = "reading and shuffling are the bottleneck" if is_shuffling else "reading is the bottleneck"
        change, setting, extra_bytes = _faster_reading(facts)
    missing_bytes = 0 if setting == "memory.limit" else max(0, extra_bytes - max(0, facts.free_bytes))
    reason = f"waiting {facts.waiting_share:.0%} of the time: {cause}"
    return Advice(reason, change, setting, extra_bytes, missing_bytes)


def _faster_parsing(facts: DataPathFacts) -> tuple[str, str, int]:
    """What to change, the setting, and what it takes more; the same of reading."""
    times = facts.parsing_seconds / max(facts.reading_seconds, facts.computing_seconds, 1e-9)
    worth_it = facts.parsing_seconds > WORKERS_HELP_FROM * facts.reading_seconds or facts.num_workers
    wanted = min(facts.num_cores, max(facts.num_workers + 1, math.ceil(times)))
    if worth_it and wanted > facts.num_workers:
        setting = "data_config.num_workers"
        extra_bytes = (wanted - facts.num_workers) * worker_bytes(facts.batch_bytes)
        return f"{setting}: {wanted}", setting, extra_bytes
    change = "worker processes would not help; columns of numbers and lists instead of text parse fastest"
    if facts.num_workers:
        change = "all cores parse already: give the run more of them, or fewer and simpler features"
    return change, "feature_configs", 0


def _faster_reading(facts: DataPathFacts) -> tuple[str, str, int]:
    shares, setting = facts.share_bytes, "penstock rewrite"
    if shares.get("shuffle", 0) > LARGE_SHUFFLE_BYTES:
        setting = "data_config.shuffle_buffer"
        then = f"{setting}: {format_size(LARGE_SHUFFLE_BYTES)}"
        change = f"mix the files once with `penstock rewrite --shuffle`, then {then}"
        return change, setting, LARGE_SHUFFLE_BYTES - shares["shuffle"]
    if facts.dataset_type in ROW_FORMATS:
        files = ROW_FORMATS[facts.dataset_type]
        change = f"{files} as Parquet (`{setting}`, then train_input_path: what it wrote)"
        return change, setting, max(0, RewriteOptions().row_group_bytes - shares.get("reader", 0))
    if "read ahead" not in shares:
        extra_bytes = 2 * shares.get("reader", 0)
        limit = f"memory.limit raised by {format_size(extra_bytes)}"
        return f"nothing is read ahead for lack of memory: {limit}", "memory.limit", extra_bytes
    change = "`penstock inspect` says what is wrong with the files, `penstock rewrite` puts it right"
    return change, setting, 0


# --- Quality ---------------------------------------------------------------------------------------------


def advise_on_quality(evaluations: Sequence[Mapping[str, Any]]) -> Advice | None:
    """Of the evaluations of a run, up to the step that it ended with: what got worse by training on, and the cure."""
    if len(evaluations) < 2:
        return None
    last, curves = evaluations[-1], dict[str, list[float]]()
    for name in (*last["metrics"], *last["losses"]):
        found = [{**each["metrics"], **each["losses"]}.get(name) for each in evaluations]
        known = [value for value in found if value is not None]
        if len(known) == len(found):
            curves[name] = known

    def best_of(name: str) -> int | None:
        """Which evaluation was the best, where the last is worse by more than noise."""
        values, is_loss = curves[name], smaller_is_better(name, last["losses"])
        if not is_loss and best_value(name) is not Best.max:
            return None
        index = values.index(min(values) if is_loss else max(values))
        worse = abs(values[-1] - values[index]) / ((abs(values[index]) or 1.0) if is_loss else 1.0)
        least = max(MIN_WORSENING, 1 / math.sqrt(max(1, last["rows"])))
        return index if worse > least * (1 if len(values) - index >= MIN_EVALUATIONS else CLEAR) else None

    def advice(reason: str, name: str, less: str) -> Advice:
        stopping = f"train_config.early_stopping: {{metric: {name}, patience: 2}}"
        return Advice(reason, f"{less}a lower learning rate, or {stopping}", "train_config.early_stopping")

    bests = {name: index for name in curves if (index := best_of(name)) is not None}
    for order, probabilities in itertools.product(ORDER, PROBABILITIES):
        for name, values in curves.items():
            loss = probabilities + name.removeprefix(order)  # of the same tower
            index = bests.get(loss)
            if not name.startswith(order) or index is None or values[-1] - values[index] <= MIN_RISE:
                continue
            return advice(
                f"{name} rose from {values[index]:.4f} to {values[-1]:.4f} while {loss} worsened from "
                f"{curves[loss][index]:.4f} (step {evaluations[index]['step']:,}) to {curves[loss][-1]:.4f}: the "
                "order gets better, the probabilities get worse",
                loss,
                "where those count, ",
            )
    for name, index in bests.items():
        which = "the first evaluation" if not index else f"evaluation {index + 1} of {len(evaluations)}"
        best, values = evaluations[index], curves[name]
        less = f"train_config.num_epochs: {best['epoch']}, " if best["epoch"] else "fewer steps, "
        return advice(
            f"{name} was best at {which}: {values[index]:.4f} at step {best['step']:,}, "
            f"{values[-1]:.4f} at step {last['step']:,}",
            name,
            less,
        )
    return None
