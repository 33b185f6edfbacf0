"""The prediction loop: scores as Arrow columns, in the order of the rows."""

import pyarrow as pa
import pytest
import torch
from torch import nn

from penstock.config.errors import ConfigError
from penstock.tensors.batch import Batch
from penstock.tensors.record_batch import RecordBatchTensor
from penstock.training.evaluate import as_arrow, predict


class FirstLabel:
    """Predicts the label, as a number and as a pair."""

    def predict(self, batch):
        values = batch.labels["click"]
        return {"probs": values, "pair": torch.stack([values, -values], dim=1)}

    def loss(self, predictions, batch):
        return {}


def batch_of(*labels: float, **reserved: list[object]) -> Batch:
    reserves = pa.RecordBatch.from_pydict(reserved) if reserved else None
    return Batch(labels={"click": torch.tensor(labels)}, reserves=RecordBatchTensor(reserves))


def predicted(batches, output_columns=None):
    return list(predict(nn.Linear(1, 1), FirstLabel(), batches, output_columns))


def test_reserved_columns_stand_before_the_predictions_that_were_asked_for():
    (scores,) = predicted([batch_of(1.0, 2.0, user=["a", "b"], item=[7, 8])], ["pair", "probs"])

    assert scores.schema.names == ["user", "item", "pair", "probs"]
    assert scores["user"].to_pylist() == ["a", "b"]
    assert scores["pair"].to_pylist() == [[1.0, -1.0], [2.0, -2.0]]


def test_a_reserved_column_with_the_name_of_a_prediction():
    with pytest.raises(
        ConfigError, match=r"^reserved column 'probs' has the name of a prediction; rename it"
    ):
        predicted([batch_of(1.0, probs=[0.5])])


def test_a_model_in_training_keeps_its_mode_between_two_batches():
    model = nn.Dropout().train()
    scores = predict(model, FirstLabel(), [batch_of(1.0), batch_of(2.0)])

    next(scores)

    assert model.training
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float32])
def test_predictions_are_written_as_float32(dtype):
    assert as_arrow(torch.tensor([0.5, 1.5], dtype=dtype)).type == pa.float32()
