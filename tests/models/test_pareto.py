"""Pareto weights are the exact minimum, and the same as a search over all choices finds."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from penstock.models.pareto import gram_matrix, pareto_total, pareto_weights


@st.composite
def gradients_and_minimums(draw):
    num_losses = draw(st.integers(1, 5))
    shape = (num_losses, draw(st.integers(1, 6)))
    gradients = draw(arrays.arrays(np.float64, shape, elements=st.integers(-3, 3).map(float)))
    shares = draw(arrays.arrays(np.float64, num_losses, elements=st.sampled_from([0.0, 0.1, 0.5])))
    return gradients, shares / num_losses


def smallest_by_search(gram, minimums):
    """The least w'Gw: for every set of losses held at their minimum, the best of the others, if it is allowed."""
    size, best = len(gram), np.inf
    for count in range(1, size + 1):
        for chosen in combinations(range(size), count):
            free, held = list(chosen), [k for k in range(size) if k not in chosen]
            system = np.ones((count + 1, count + 1))
            system[:count, :count], system[count, count] = gram[np.ix_(free, free)], 0.0
            right = np.append(-gram[np.ix_(free, held)] @ minimums[held], 1.0 - minimums[held].sum())
            weights = minimums.copy()
            weights[free] = np.linalg.lstsq(system, right, rcond=None)[0][:count]
            if (weights >= minimums - 1e-9).all() and abs(weights.sum() - 1) < 1e-9:
                best = min(best, weights @ gram @ weights)
    return best


@settings(max_examples=50)
@given(gradients_and_minimums())
def test_no_allowed_weights_give_a_shorter_sum_of_gradients(case):
    gradients, minimums = case
    gram = gradients @ gradients.T
    weights = pareto_weights(gram, minimums)

    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= minimums - 1e-12).all()
    assert weights @ gram @ weights == pytest.approx(smallest_by_search(gram, minimums), abs=1e-8)


@pytest.mark.parametrize("gram", [np.zeros((2, 2)), np.full((2, 2), np.nan)])
def test_gradients_that_say_nothing_weigh_the_same(gram):
    assert pareto_weights(gram, np.array([0.5, 0.0])) == pytest.approx([0.75, 0.25])


def test_the_gram_matrix_is_that_of_the_shared_gradients():
    shared, own = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor(3.0, requires_grad=True)
    losses = [shared.sum() * own, shared.square().sum()]

    assert gram_matrix(losses, [shared]).tolist() == [[18.0, 18.0], [18.0, 20.0]]


def test_gradients_below_the_smallest_of_fp16_count_when_they_are_scaled():
    weights = []
    for scale in (1.0, 65536.0):
        shared = torch.tensor([1e-8, 1.0], dtype=torch.float32, requires_grad=True)
        rounded = shared.to(torch.float16)  # the gradient passes through FP16
        losses = [
            (rounded * vector).float().sum() * 1e-8 for vector in (torch.eye(2)[0], 3 * torch.eye(2)[1])
        ]
        total = pareto_total(losses, [shared], [0.0, 0.0], scale)
        weights.append((total / losses[1]).item())

    assert weights == pytest.approx([0.0, 0.1], abs=1e-3)  # 0.0: the other gradient seemed to be 0
