"""The loops of evaluation and of prediction, and what an evaluation found: as a value, as a record, as bins."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import pyarrow as pa
import torch
from numpy.typing import NDArray
from torch import nn

from penstock.config.errors import ConfigError
from penstock.features.value_counts import ValueCounts, add_counts
from penstock.metrics.auc import AUC
from penstock.models.model import Model
from penstock.runtime.world import Collectives
from penstock.tensors.batch import Batch
from penstock.training.task_metrics import TaskMetrics

NUM_BINS = 20
"""Bins of about as many rows each: where predictions are many, the curve is fine."""
MAX_GROUPS = 20
NO_WEIGHT = "no row weighs anything"
"""Why a loss is undefined."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    metrics: dict[str, float]
    losses: dict[str, float]
    rows: int
    calibration: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    """Predicted and observed rates by bins, for the metrics that have counted them."""

    group_auc: list[dict[str, Any]] = field(default_factory=list)
    """`group`, `rows` and `auc` of the largest groups of the first metric that groups rows; None: one class only."""

    remarks: dict[str, str] = field(default_factory=dict)
    """By name: why it is undefined, how many rows it is without, how many groups it is over, a weight that is in it."""

    value_counts: dict[str, ValueCounts] = field(default_factory=dict)
    """By feature with a vocabulary or num_buckets: values that the model does not know, and rows without one."""

    @property
    def values(self) -> dict[str, float]:
        return {**self.losses, **self.metrics}

    def as_record(self, step: int, epoch: int) -> dict[str, Any]:
        """One line of eval_result.jsonl; how long it took and the checkpoint of this step, if any, are added to it."""
        also = {
            "calibration_bins": self.calibration,
            "group_auc": self.group_auc,
            "remarks": self.remarks,
            "value_counts": counts_record(self.value_counts),
        }
        return {
            "step": step,
            "epoch": epoch,
            "metrics": self.metrics,
            "losses": self.losses,
            "rows": self.rows,
            "seconds": None,
            "checkpoint": None,
            **{name: value for name, value in also.items() if value},
        }

    @classmethod
    def recalled(cls, records: Iterable[Mapping[str, Any]], step: int) -> Self | None:
        """The evaluation of a step that was made before; what is undefined is NaN again."""
        record = next((record for record in records if record["step"] == step), None)
        if record is None:
            return None
        metrics, losses = (
            {name: math.nan if value is None else value for name, value in record[key].items()}
            for key in ("metrics", "losses")
        )
        return cls(metrics, losses, record["rows"], remarks=record.get("remarks", {}))


def counts_record(counts: Mapping[str, ValueCounts]) -> dict[str, Any]:
    """Counts for JSON, of features that have something unknown or missing."""
    return {name: asdict(each) for name, each in counts.items() if each.unknown or each.missing}


def evaluate(
    model: nn.Module,
    scoring: Model,
    batches: Iterable[Batch],
    metrics: TaskMetrics,
    on_batch: Callable[[Batch], None] = lambda batch: None,
    collectives: Collectives | None = None,
) -> Evaluation:
    """Score every batch. `model` is put into evaluation mode meanwhile, and back into what it was.

    With `collectives`, losses and rows are those of all ranks, as are metrics that were given the same.
    """
    # Of each loss, value times weight and weight of its batches: so its mean does not depend on how rows are cut.
    totals: dict[str, NDArray[np.float64]] = {}
    value_counts: dict[str, ValueCounts] = {}
    num_rows = 0
    with evaluation_mode(model):
        for batch in batches:
            predictions = scoring.predict(batch)
            metrics.update(predictions, batch)
            weights = scoring.loss_weights(batch)
            for name, loss in scoring.loss(predictions, batch).items():
                added = np.array([float(loss), 1.0]) * weights[name]
                totals[name] = totals.get(name, 0.0) + added
            num_rows += batch.num_rows
            add_counts(value_counts, batch.value_counts or {})
            on_batch(batch)
    values, remarks = metrics.compute(), metrics.remarks()
    if collectives is not None:
        totals, value_counts = _sums_of_ranks(totals, value_counts, collectives)
        num_rows = int(collectives.sum(np.array(num_rows)))
    losses = {name: float(total / weight) if weight else math.nan for name, (total, weight) in totals.items()}
    undefined = {name: NO_WEIGHT for name, (_, weight) in totals.items() if not weight}
    weighted = {
        name: f"weight {task.weight:g} included"
        for task in scoring.tasks
        for name in task.loss_names
        if task.weight != 1
    }
    # An exact AUC keeps no histogram, and has no bins.
    counts = {
        name: bound.metric.counts for name, bound in metrics.bound.items() if isinstance(bound.metric, AUC)
    }
    grouped: Any = next(
        (bound.metric for bound in metrics.bound.values() if hasattr(bound.metric, "largest_groups")), None
    )
    groups = [] if grouped is None else grouped.largest_groups(MAX_GROUPS)
    return Evaluation(
        values,
        losses,
        num_rows,
        calibration={name: bins_of(count) for name, count in counts.items() if count.any()},
        group_auc=[{"group": group, "rows": rows, "auc": area} for group, rows, area in groups],
        remarks={**weighted, **undefined, **remarks},
        value_counts=value_counts,
    )


def _sums_of_ranks(
    totals: Mapping[str, NDArray[np.float64]], counts: Mapping[str, ValueCounts], collectives: Collectives
) -> tuple[dict[str, NDArray[np.float64]], dict[str, ValueCounts]]:
    """Every rank must call, also one that has seen no batch and knows no name."""
    own = [
        {name: total.tolist() for name, total in totals.items()},
        {name: asdict(each) for name, each in counts.items()},
    ]
    summed: dict[str, NDArray[np.float64]] = {}
    summed_counts: dict[str, ValueCounts] = {}
    for part in collectives.gather(np.frombuffer(json.dumps(own).encode(), np.uint8)):
        rank_totals, rank_counts = json.loads(part.tobytes())
        for name, total in rank_totals.items():
            summed[name] = summed.get(name, 0.0) + np.array(total)
        add_counts(summed_counts, {name: ValueCounts(**each) for name, each in rank_counts.items()})
    return summed, summed_counts


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """No dropout, no gradients; the mode from before comes back at the end."""
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)


def bins_of(counts: NDArray[Any]) -> dict[str, list[float]]:
    """Mean prediction, observed rate and rows of each bin, from counts of negatives and positives by prediction."""
    rows = counts.sum(axis=0)
    step = 1 / max(1, len(rows) - 1)
    centers = np.minimum((np.arange(len(rows)) + 0.5) * step, 1.0)
    # A slot goes as a whole into the bin that the middle of its rows falls into.
    middle = np.cumsum(rows) - rows / 2
    which = np.minimum((middle * NUM_BINS / max(1, rows.sum())).astype(np.int64), NUM_BINS - 1)
    in_bin = np.bincount(which, rows, NUM_BINS)
    used = in_bin > 0
    predicted = np.bincount(which, rows * centers, NUM_BINS)[used] / in_bin[used]
    observed = np.bincount(which, counts[1], NUM_BINS)[used] / in_bin[used]
    return {
        "predicted": np.round(predicted, 6).tolist(),
        "observed": np.round(observed, 6).tolist(),
        "rows": in_bin[used].astype(int).tolist(),
    }


def predict(
    model: nn.Module, scoring: Model, batches: Iterable[Batch], output_columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """One record batch per batch: reserved columns first, then predictions, rows as they came."""
    for batch in batches:
        # The mode is set around each batch, not around the loop: a generator may be left half-way.
        with evaluation_mode(model):
            found = scoring.predict(batch)
        reserved = batch.reserves.get()
        columns: dict[str, pa.Array[Any]] = {}
        if reserved is not None:
            columns.update(zip(reserved.schema.names, reserved.columns, strict=True))
        for name in found if output_columns is None else output_columns:
            if name in columns:
                raise ConfigError(
                    f"reserved column '{name}' has the name of a prediction; rename it or leave it out"
                )
            columns[name] = as_arrow(found[name])
        yield pa.RecordBatch.from_pydict(columns)


def as_arrow(values: torch.Tensor) -> "pa.Array[Any]":
    """A column of numbers, or of fixed-size lists for predictions with a width."""
    array = values.detach().to("cpu", torch.float32).numpy()
    flat: pa.Array[Any] = pa.array(array.reshape(-1))
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
