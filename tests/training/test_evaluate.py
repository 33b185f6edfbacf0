"""The loops of evaluation and of prediction, and evaluations as lines of eval_result.jsonl."""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.metrics.auc import AUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.wiring import BoundMetric
from penstock.models.task import weighted_mean
from penstock.runtime.durable import Journal
from penstock.tensors.batch import Batch, RecordBatchTensor
from penstock.training.evaluate import (
    MAX_GROUPS,
    Evaluation,
    as_arrow,
    bins_of,
    evaluate,
    evaluation_mode,
    predict,
)
from penstock.training.task_metrics import TaskMetrics


@dataclass(frozen=True)
class LabelledBatch:
    """Labels alone."""

    labels: dict[str, torch.Tensor]
    weights: torch.Tensor | None = None
    value_counts: None = None

    @property
    def num_rows(self) -> int:
        return len(self.labels["click"])


class Doubler:
    """Predicts twice the label; its loss is the weighted mean of the labels."""

    tasks = ()

    def predict(self, batch):
        assert not torch.is_grad_enabled()
        return {"probs": batch.labels["click"] * 2}

    def loss(self, predictions, batch):
        return {"mean_label": weighted_mean(batch.labels["click"], batch.weights)}

    def loss_weights(self, batch):
        return {"mean_label": float(batch.num_rows if batch.weights is None else batch.weights.sum())}


def batch_of(*labels: float) -> LabelledBatch:
    return LabelledBatch({"click": torch.tensor(labels)})


@pytest.mark.parametrize("weights", [None, torch.tensor([4.0, 0.0, 0.0, 1.0, 3.0, 0.5])])
@pytest.mark.parametrize("cuts", [[0, 6], [0, 1, 3, 6]])
def test_the_mean_of_a_loss_does_not_depend_on_the_cut(cuts, weights):
    labels = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    batches = [
        LabelledBatch({"click": labels[begin:end]}, None if weights is None else weights[begin:end])
        for begin, end in pairwise(cuts)
    ]

    expected = 3.5 if weights is None else (4 * 1 + 1 * 4 + 3 * 5 + 0.5 * 6) / 8.5
    assert evaluate(nn.Linear(1, 1), Doubler(), batches, TaskMetrics({})).losses == {
        "mean_label": pytest.approx(expected)
    }


def test_a_loss_of_rows_that_all_weigh_nothing_is_undefined_and_says_why():
    batches = [LabelledBatch({"click": torch.tensor([5.0])}, torch.zeros(1))] * 2

    found = evaluate(nn.Linear(1, 1), Doubler(), batches, TaskMetrics({}))

    assert math.isnan(found.losses["mean_label"])
    assert found.remarks == {"mean_label": "no row weighs anything"}


@pytest.mark.parametrize("was_training", [True, False])
def test_the_model_gets_its_mode_back_also_after_an_error(was_training):
    model = nn.Dropout().train(was_training)

    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        raise ZeroDivisionError if not model.training else AssertionError

    assert model.training is was_training
    assert torch.is_grad_enabled()


WITHOUT_A_POSITIVE = Evaluation(
    metrics={"auc": math.nan, "accuracy": 0.75},
    losses={"binary_cross_entropy": 0.5},
    rows=200,
    remarks={"auc": "no positive rows"},
)


def test_an_evaluation_is_recalled_with_the_reason_for_a_missing_value(tmp_path):
    journal = Journal(tmp_path / "eval_result.jsonl")
    for step in (10, 20):
        journal.write(WITHOUT_A_POSITIVE.as_record(step, 0))

    found = Evaluation.recalled(journal.read(), 20)

    assert found is not None
    assert (math.isnan(found.metrics["auc"]), found.metrics["accuracy"]) == (True, 0.75)
    assert (found.losses, found.rows) == ({"binary_cross_entropy": 0.5}, 200)
    assert found.remarks == {"auc": "no positive rows"}
    assert Evaluation.recalled(journal.read(), 30) is None
    assert {"calibration_bins", "group_auc"}.isdisjoint(journal.read()[0]), (
        "no key for what there is nothing of"
    )


def counted(predictions: list[float] | np.ndarray, labels: list[int] | np.ndarray) -> np.ndarray:
    metric = AUC()
    metric.update(np.asarray(predictions), np.asarray(labels))
    counts: np.ndarray = metric.state_dict()["counts"]
    return counts


def test_rows_of_two_predictions_make_two_bins() -> None:
    found = bins_of(counted([0.25] * 4 + [0.75] * 4, [0, 0, 0, 1, 1, 1, 1, 0]))

    assert found["predicted"] == pytest.approx([0.25, 0.75], abs=1e-5)
    assert found["observed"] == [0.25, 0.75]
    assert found["rows"] == [4, 4]
    assert bins_of(AUC().state_dict()["counts"]) == {"predicted": [], "observed": [], "rows": []}


def grouped(groups: list[int]) -> BoundMetric:
    metric = GroupedAUC()
    metric.update(
        [0.1, 0.9] * len(groups), [0, 1] * len(groups), [group for group in groups for _ in range(2)]
    )
    return BoundMetric("grouped_auc", metric, "probs", "click", "user_id")


def test_the_largest_groups_of_a_metric_that_has_groups() -> None:
    few, many = (
        evaluate(nn.Linear(1, 1), Doubler(), [], TaskMetrics({"grouped_auc": grouped(groups)}))
        for groups in ([3], list(range(100)))
    )

    assert few.group_auc == [{"group": 3, "rows": 2, "auc": 1.0}]
    assert len(many.group_auc) == MAX_GROUPS


class FirstLabel:
    """Predicts the label, as a number and as a pair."""

    def predict(self, batch):
        values = batch.labels["click"]
        return {"probs": values, "pair": torch.stack([values, -values], dim=1)}


def reserving_batch(*labels: float, **reserved: list[object]) -> Batch:
    reserves = pa.RecordBatch.from_pydict(reserved) if reserved else None
    return Batch(labels={"click": torch.tensor(labels)}, reserves=RecordBatchTensor(reserves))


def predicted(batches, output_columns=None):
    return list(predict(nn.Linear(1, 1), FirstLabel(), batches, output_columns))


def test_reserved_columns_stand_before_the_predictions_that_were_asked_for():
    (scores,) = predicted([reserving_batch(1.0, 2.0, user=["a", "b"], item=[7, 8])], ["pair", "probs"])

    assert scores.schema.names == ["user", "item", "pair", "probs"]
    assert scores["user"].to_pylist() == ["a", "b"]
    assert scores["pair"].to_pylist() == [[1.0, -1.0], [2.0, -2.0]]


def test_a_reserved_column_with_the_name_of_a_prediction():
    with pytest.raises(
        ConfigError, match=r"^reserved column 'probs' has the name of a prediction; rename it"
    ):
        predicted([reserving_batch(1.0, probs=[0.5])])


def test_a_model_in_training_keeps_its_mode_between_two_batches():
    model = nn.Dropout().train()
    scores = predict(model, FirstLabel(), [reserving_batch(1.0), reserving_batch(2.0)])

    next(scores)

    assert model.training
    assert torch.is_grad_enabled()


def test_predictions_are_written_as_float32():
    assert as_arrow(torch.tensor([0.5, 1.5], dtype=torch.bfloat16)).type == pa.float32()
