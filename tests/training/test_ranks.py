"""Evaluation and train metrics on several ranks: the numbers of one process that saw all rows."""

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

from penstock.metrics import build_metrics
from penstock.metrics.sections import MetricConfig, TrainMetricConfig
from penstock.models.task import weighted_mean
from penstock.tensors.batch import Batch, RecordBatchTensor
from penstock.training.evaluate import evaluate
from penstock.training.task_metrics import TaskMetrics
from tests.metrics.ranks import on_ranks

NUM_ROWS, BATCH_ROWS = 300, 32
METRICS = [{"auc": {"exact": True}}, {"grouped_auc": {"grouping_key": "user"}}, {"log_loss": {}}]
BEGINS = [0, 250, NUM_ROWS, NUM_ROWS]
"""Where the rows of each rank begin; the last rank has none."""


class Given:
    """The predictions of these rows come with them."""

    tasks = ()

    def predict(self, batch):
        return {"probs": batch.labels["prob"]}

    def loss(self, predictions, batch):
        errors = (predictions["probs"] - batch.labels["click"]).abs()
        return {"error": weighted_mean(errors, batch.labels["weight"])}

    def loss_weights(self, batch):
        return {"error": float(batch.labels["weight"].sum())}


def batches(begin=0, end=NUM_ROWS):
    generator = np.random.default_rng(0)
    prob, weight, chance = generator.random((3, NUM_ROWS))
    columns = {"prob": prob, "weight": weight, "click": (chance < prob).astype(np.float64)}
    users = generator.integers(0, 20, NUM_ROWS)
    for first in range(begin, end, BATCH_ROWS):
        rows = slice(first, min(first + BATCH_ROWS, end))
        labels = {name: torch.tensor(values[rows]) for name, values in columns.items()}
        reserves = RecordBatchTensor(pa.RecordBatch.from_pydict({"user": users[rows]}))
        yield Batch(labels=labels, reserves=reserves)


def evaluated(own_batches, collectives=None):
    metrics = build_metrics([MetricConfig.model_validate(each) for each in METRICS], ["probs"], label="click")
    counted = TaskMetrics(metrics, {"user": "user"}, collectives=collectives)
    found = evaluate(nn.Linear(1, 1), Given(), own_batches, counted, collectives=collectives)
    return found.values, found.rows, found.remarks


def test_an_evaluation_on_ranks_is_that_of_one_process():
    values, rows, remarks = evaluated(batches())

    found = on_ranks(3, lambda rank, group: evaluated(batches(*BEGINS[rank : rank + 2]), group))

    assert found == [(pytest.approx(values, abs=1e-12), rows, remarks)] * 3


class CountingCollectives:
    """Real exchanges, and how many there were."""

    def __init__(self, real):
        self._real, self.num_calls = real, 0

    def __getattr__(self, name):
        self.num_calls += name != "barrier"
        return getattr(self._real, name)


def followed(steps, collectives=None):
    """The values after each step of train metrics over windows of 3 steps, and the exchanges so far."""
    configs = [
        TrainMetricConfig.model_validate({**each, "decay_step": 3})
        for each in ({"auc": {}}, {"log_loss": {}})
    ]
    metrics = TaskMetrics(build_metrics(configs, ["probs"], label="click", collectives=collectives))
    values = []
    for batch in steps:
        metrics.update({"probs": batch.labels["prob"]}, batch)
        values.append((metrics.compute(), getattr(collectives, "num_calls", 0)))
    return values


def test_train_metrics_exchange_when_a_window_closes_and_only_then():
    steps, nothing = list(batches()), Batch(labels=dict.fromkeys(("prob", "click"), torch.zeros(0)))
    expected = [pytest.approx(values, abs=1e-12) for values, _ in followed(steps)]

    def train(rank, collectives):
        return followed(steps if rank else [nothing] * len(steps), CountingCollectives(collectives))

    for found in on_ranks(2, train):
        calls = [0, *(num_calls for _, num_calls in found)]
        closed = [step for step in range(1, len(calls)) if calls[step] > calls[step - 1]]
        assert closed == list(range(3, len(calls), 3))
        assert [values for values, _ in found][2:] == expected[2:]
