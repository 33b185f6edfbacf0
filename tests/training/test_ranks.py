"""Evaluation and train metrics on several real processes: the numbers of one process that saw all rows."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

from penstock.metrics import build_metrics, build_train_metrics
from penstock.metrics.sections import MetricConfig, TrainMetricConfig
from penstock.models.losses import weighted_mean
from penstock.runtime.collectives import Collectives
from penstock.runtime.world import World
from penstock.tensors.batch import Batch
from penstock.tensors.record_batch import RecordBatchTensor
from penstock.training.evaluate import evaluate
from penstock.training.task_metrics import TaskMetrics
from tests.distributed.two_ranks import run_on_ranks

NUM_ROWS, BATCH_ROWS = 300, 32
METRICS = [{"auc": {}}, {"grouped_auc": {"grouping_key": "user"}}, {"log_loss": {}}, {"calibration": {}}]
ROWS_OF_RANKS = {2: [0, NUM_ROWS], 3: [0, 250, NUM_ROWS]}
"""Where the rows of each rank begin; the last rank has none."""


@dataclass(frozen=True)
class Given:
    """The predictions of these rows come with them."""

    def predict(self, batch):
        return {"probs": batch.labels["prob"]}

    def loss(self, predictions, batch):
        return {
            "error": weighted_mean(
                (predictions["probs"] - batch.labels["click"]).abs(), batch.labels["weight"]
            )
        }

    def loss_weights(self, batch):
        return {"error": float(batch.labels["weight"].sum())}


def batches(begin, end):
    generator = np.random.default_rng(0)
    prob, weight = generator.random(NUM_ROWS), generator.random(NUM_ROWS)
    columns = {
        "prob": prob,
        "weight": weight,
        "click": (generator.random(NUM_ROWS) < prob).astype(np.float64),
    }
    users = generator.integers(0, 20, NUM_ROWS)
    for first in range(begin, end, BATCH_ROWS):
        rows = slice(first, min(first + BATCH_ROWS, end))
        labels = {name: torch.tensor(values[rows]) for name, values in columns.items()}
        reserves = RecordBatchTensor(pa.RecordBatch.from_pydict({"user": users[rows]}))
        yield Batch(labels=labels, reserves=reserves)


def evaluated(own_batches, collectives=None):
    metrics = build_metrics([MetricConfig.model_validate(each) for each in METRICS], ["probs"], label="click")
    exact = build_metrics([MetricConfig.model_validate({"auc": {"exact": True}})], ["probs"], label="click")
    metrics["exact_auc"] = exact["auc"]
    counted = TaskMetrics(metrics, {"user": "user"}, collectives=collectives)
    return evaluate(nn.Linear(1, 1), Given(), own_batches, counted, collectives=collectives)


def evaluate_part(world: World, collectives: Collectives) -> dict[str, object]:
    begins = [*ROWS_OF_RANKS[world.num_ranks], NUM_ROWS]
    found = evaluated(batches(begins[world.rank], begins[world.rank + 1]), collectives)
    return {"values": {**found.metrics, **found.losses}, "rows": found.rows, "remarks": found.remarks}


@pytest.mark.slow
@pytest.mark.parametrize("num_ranks", [2, 3])
def test_an_evaluation_on_ranks_is_that_of_one_process(num_ranks):
    whole = evaluated(batches(0, NUM_ROWS))
    expected = {
        "values": pytest.approx({**whole.metrics, **whole.losses}, abs=1e-12),
        "rows": NUM_ROWS,
        "remarks": whole.remarks,
    }

    assert run_on_ranks(num_ranks, evaluate_part) == [expected] * num_ranks


class CountingCollectives:
    """Real exchanges, and how many there were."""

    def __init__(self, real):
        self._real, self.num_calls = real, 0

    def __getattr__(self, name):
        self.num_calls += name != "barrier"
        return getattr(self._real, name)


def followed(batches_of_steps, collectives=None):
    """The values after each step of train metrics over windows of 3 steps."""
    configs = [
        TrainMetricConfig.model_validate({**each, "decay_step": 3})
        for each in ({"auc": {}}, {"log_loss": {}})
    ]
    metrics = TaskMetrics(build_train_metrics(configs, ["probs"], label="click", collectives=collectives))
    values = []
    for batch in batches_of_steps:
        metrics.update({"probs": batch.labels["prob"]}, batch)
        values.append((metrics.compute(), getattr(collectives, "num_calls", 0)))
    return values


def train_part(world: World, collectives: Collectives) -> list[object]:
    """The first rank takes every step with an empty batch, the second with all rows."""
    steps = list(batches(0, NUM_ROWS))
    own = steps if world.rank else [empty_batch() for _ in steps]
    return followed(own, CountingCollectives(collectives))


def empty_batch():
    labels = {name: torch.zeros(0, dtype=torch.float64) for name in ("prob", "weight", "click")}
    return Batch(labels=labels)


@pytest.mark.slow
def test_train_metrics_exchange_when_a_window_closes_and_only_then():
    expected = [values for values, _ in followed(batches(0, NUM_ROWS))]

    for found in run_on_ranks(2, train_part):
        calls = [num_calls for _, num_calls in found]
        assert [calls[index] > calls[index - 1] for index in range(1, len(calls))] == [
            (step + 1) % 3 == 0 for step in range(1, len(calls))
        ]
        closed = [values for values, _ in found][2:]
        assert closed == [pytest.approx(values, abs=1e-12) for values in expected[2:]]
