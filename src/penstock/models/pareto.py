"""Weights of several losses under which no task gets worse: the shortest of all weighted sums of their gradients.

The gradients are those of what the tasks share. With weights w >= c that sum to 1, the shortest weighted sum is a
small quadratic problem in the losses' Gram matrix; it is solved exactly, by an active set.
Lin et al., "A Pareto-Efficient Algorithm for Multiple Objective Optimization in E-Commerce Recommendation", 2019.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.runtime.world import Collectives

FloatArray = NDArray[np.float64]

_TOLERANCE = 1e-12
"""Of squared lengths, beside the sum of the vectors' own."""

_MAX_TURNS = 1000
"""Far more than a few losses ever need; the weights are usable after each."""


def pareto_total(
    losses: list[torch.Tensor],
    shared: list[torch.Tensor],
    minimums: list[float],
    scale: float = 1.0,
    collectives: Collectives | None = None,
) -> torch.Tensor:
    """The weighted sum of the losses. `shared` are the tensors of the graph that all of them depend on.

    `scale` makes the gradients larger where small ones would be lost; weights do not depend on it. With `collectives`
    the Gram matrices of all ranks are added, so that all find the same weights; every rank must call. That is the
    matrix of all rows for vectors that were looked up, which belong to rows, and leaves out products of gradients of
    different ranks for parameters.

    Tables whose update is fused into the backward pass have no gradient to look at: the vectors that were looked up
    in them stand for them. No gradient is looked for beyond `shared`, so that tables do not move here.
    """
    moving = [tensor for tensor in shared if tensor.requires_grad]
    scaled = [loss * scale for loss in losses] if scale != 1 else losses
    gram = gram_matrix(scaled, moving) if moving else np.zeros((len(losses), len(losses)))
    if collectives is not None:
        gram = collectives.sum(gram)
    weights = pareto_weights(gram, np.asarray(minimums, np.float64))
    stacked = torch.stack(losses)
    return (stacked * torch.as_tensor(weights, dtype=stacked.dtype, device=stacked.device)).sum()


def gram_matrix(losses: Sequence[torch.Tensor], shared: Sequence[torch.Tensor]) -> FloatArray:
    """The inner products of the losses' gradients over `shared`."""
    gram = torch.zeros(len(losses), len(losses), dtype=torch.float64)
    gradients: list[tuple[torch.Tensor, ...]] = []
    for row, loss in enumerate(losses):
        gradients.append(torch.autograd.grad(loss, shared, retain_graph=True, materialize_grads=True))
        for column, earlier in enumerate(gradients):
            products = [(a * b).sum() for a, b in zip(gradients[row], earlier, strict=True)]
            gram[row, column] = gram[column, row] = torch.stack(products).sum()
    return gram.numpy()


def pareto_weights(gram: FloatArray, minimums: FloatArray) -> FloatArray:
    """The w with w >= minimums and sum 1 for which w' G w is least.

    With s = 1 - sum(c) and v in the simplex, w = c + s v, and the weighted sum of gradients is that of the vectors
    sum(c g) + s g_k with weights v: what is looked for is the point of their convex hull that is nearest to 0.
    """
    free = 1.0 - minimums.sum()
    to_minimums = gram @ minimums
    shifted = minimums @ to_minimums + free * (to_minimums[:, None] + to_minimums[None, :]) + free**2 * gram
    weights: FloatArray = minimums + free * nearest_point(shifted)
    return weights


def nearest_point(gram: FloatArray) -> FloatArray:
    """The weights, in the simplex, of the point nearest to 0 in the convex hull of vectors with this Gram matrix.

    Wolfe's algorithm ("Finding the Nearest Point in a Polytope", 1976): take in the vector that is most opposed to
    the point so far, go to the nearest point of the flat through the chosen ones, and drop those that this would
    give a negative weight. The distance falls at every turn, so no choice comes twice. Gradients that are all 0,
    or not finite, say nothing: then all weigh the same.
    """
    size = len(gram)
    scale = float(np.trace(gram))
    if not np.isfinite(gram).all() or scale <= 0:
        return np.full(size, 1.0 / size)
    gram = gram / scale
    weights = np.zeros(size)
    weights[np.argmin(np.diag(gram))] = 1.0
    for _ in range(_MAX_TURNS):
        slopes = gram @ weights
        entering = int(np.argmin(slopes))
        if slopes[entering] >= weights @ slopes - _TOLERANCE:
            break
        chosen = np.flatnonzero((weights > 0) | (np.arange(size) == entering))
        weights = _descend(gram, weights, chosen)
    return weights


def _descend(gram: FloatArray, weights: FloatArray, chosen: NDArray[np.int64]) -> FloatArray:
    """The nearest point with positive weights of the chosen vectors, or of those that are left of them."""
    while True:
        target = np.zeros_like(weights)
        target[chosen] = _flat_minimum(gram[np.ix_(chosen, chosen)])
        if (target[chosen] >= 0).all():
            return target
        falling = chosen[target[chosen] < 0]
        steps = weights[falling] / (weights[falling] - target[falling])
        weights = weights + steps.min() * (target - weights)
        weights[falling[np.argmin(steps)]] = 0.0
        chosen = chosen[weights[chosen] > 0]


def _flat_minimum(gram: FloatArray) -> FloatArray:
    """Weights, of any sign, that sum to 1 and give the point nearest to 0."""
    size = len(gram)
    system = np.ones((size + 1, size + 1))
    system[:size, :size], system[size, size] = gram, 0.0
    solution: FloatArray = np.linalg.lstsq(system, np.eye(size + 1)[size], rcond=None)[0]
    return solution[:size]
