"""Losses and their weights on several ranks: those of one process with all rows."""

import numpy as np
import pytest
import torch

from penstock.models.pareto import pareto_total
from penstock.models.sections.towers import LossConfig
from penstock.models.task import Task, with_step_shares
from penstock.runtime.world import OneProcess
from penstock.tensors.batch import Batch
from tests.metrics.ranks import on_ranks

NUM_ROWS = 10
BEGINS = {2: [0, 3, NUM_ROWS], 3: [0, 0, 4, NUM_ROWS]}
"""Rows of each rank; the first of three has none."""


def tasks():
    """One whose rows weigh differently, and one whose rows weigh the same."""
    losses = [LossConfig.model_validate({"binary_cross_entropy": {}})]
    return [
        Task(losses, "click", "importance", tower="weighted"),
        Task(losses, "click", tower="plain", weight=0.5),
    ]


def losses_and_gradient(begin, end, collectives=None):
    generator = torch.Generator().manual_seed(0)
    features, labels, weights = (torch.rand(NUM_ROWS, generator=generator) for _ in range(3))
    weights[0] = 0.0
    rows = slice(begin, end)
    batch = Batch(
        labels={"click": (labels[rows] > 0.5).float()}, sample_weights={"importance": weights[rows]}
    )
    if collectives is not None:
        batch = with_step_shares(batch, tasks(), collectives)
    slope = torch.tensor(2.0, requires_grad=True)
    losses = {}
    for task in tasks():
        predictions = task.predictions((slope * features[rows]).unsqueeze(1), batch)
        losses |= task.losses(predictions, batch)
    torch.stack(list(losses.values())).sum().backward()
    return np.array([*(loss.item() for loss in losses.values()), slope.grad.item()])


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_losses_and_gradients_of_ranks_average_to_those_of_one_process(num_ranks):
    expected = losses_and_gradient(0, NUM_ROWS)

    found = on_ranks(
        num_ranks, lambda rank, group: losses_and_gradient(*BEGINS[num_ranks][rank : rank + 2], group)
    )

    assert np.mean(found, axis=0) == pytest.approx(expected, rel=1e-5)  # as ranks average gradients


def test_one_process_has_the_whole_share_but_of_rows_that_weigh_nothing():
    assert losses_and_gradient(0, NUM_ROWS, OneProcess()) == pytest.approx(losses_and_gradient(0, NUM_ROWS))
    batch = Batch(labels={"click": torch.ones(2)}, sample_weights={"importance": torch.zeros(2)})
    shares = with_step_shares(batch, tasks(), OneProcess()).step_shares
    assert {suffix: share.item() for suffix, share in shares.items()} == {"_weighted": 0.0, "_plain": 1.0}


def pareto_weight_of(begin, end, collectives=None):
    """Two losses of vectors that were looked up for rows; they are 1 and 0, so that the total is the first weight."""
    generator = torch.Generator().manual_seed(1)
    first, second = (torch.randn(NUM_ROWS, 3, generator=generator)[begin:end] for _ in range(2))
    looked_up = torch.zeros(end - begin, 3, requires_grad=True)
    losses = [(looked_up * first).sum() + 1.0, (looked_up * second * 2).sum()]
    return pareto_total(losses, [looked_up], [0.1, 0.0], collectives=collectives).item()


def test_pareto_weights_are_those_of_the_rows_of_all_ranks():
    expected = pytest.approx(pareto_weight_of(0, NUM_ROWS), rel=1e-5)

    assert pareto_weight_of(0, 3) != expected
    assert (
        on_ranks(2, lambda rank, group: pareto_weight_of(*BEGINS[2][rank : rank + 2], group))
        == [expected] * 2
    )
