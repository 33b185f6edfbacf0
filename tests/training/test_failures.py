"""A batch as a file for a person."""

import json

import numpy as np
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from penstock.tensors.batch import BASE, Batch, Position
from penstock.training.failures import first_bad_row, write_rows

NAN, INF = float("nan"), float("inf")


def two_rows(position: Position | None = None) -> Batch:
    return Batch(
        dense_features={
            BASE: KeyedTensor(["price", "vector"], [1, 2], torch.tensor([[1.0, 2, 3], [INF, 5, 6]]))
        },
        sparse_features={
            BASE: KeyedJaggedTensor(
                ["tags"], torch.tensor([7, 8, 9]), lengths=torch.tensor([2, 1], dtype=torch.int32)
            )
        },
        labels={"click": torch.tensor([0, 1])},
        position=position,
    )


def test_every_row_says_where_it_is_from_and_what_it_holds(tmp_path):
    position = Position.of(np.array([(1 << 40) | 4, 2]), ("a.parquet", "b.parquet"))
    path = tmp_path / "nonfinite" / "step-1.jsonl"

    write_rows(path, two_rows(position), {"probs": torch.tensor([0.5, NAN], dtype=torch.bfloat16)})

    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {
            "file": "b.parquet",
            "row": 4,
            "predictions": {"probs": 0.5},
            "labels": {"click": 0},
            "features": {"price": 1.0, "vector": [2.0, 3.0], "tags": [7, 8]},
        },
        {
            "file": "a.parquet",
            "row": 2,
            "predictions": {"probs": "NaN"},
            "labels": {"click": 1},
            "features": {"price": "Infinity", "vector": [5.0, 6.0], "tags": [9]},
        },
    ]


def test_a_message_names_the_first_row_that_is_not_finite():
    position = Position.of(np.array([3, 4]), ("a.parquet",))
    predictions = {"logits": torch.tensor([[0.0, 1.0], [INF, 0.0]]), "probs": torch.tensor([0.5, NAN])}

    assert first_bad_row(two_rows(position), predictions) == (
        "; predictions of 1 of them are not finite, the first row 4 of a.parquet"
    )
    assert first_bad_row(two_rows(), predictions).endswith("the first row 1 of the batch")
    assert first_bad_row(two_rows(position), {"probs": torch.tensor([0.5, 0.5])}) == ""


def test_classes_that_a_mask_rules_out_are_not_bad_rows():
    masked = torch.tensor([[0.0, -INF, 1.0], [-INF, 0.5, 2.0]])

    assert first_bad_row(two_rows(), {"logits_move": masked, "probs_move": torch.zeros(2, 3)}) == ""
    assert "predictions of 1 of them" in first_bad_row(two_rows(), {"logits": torch.tensor([-INF, 0.0])})
    assert "predictions of 2 of them" in first_bad_row(two_rows(), {"logits": torch.full((2, 3), -INF)})
