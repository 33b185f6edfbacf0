"""Vectors of ids to vectors of steps and rows, whose numbers differ from row to row.

What they do depends on the batch: whoever traces must not look inside (torch.fx.wrap where they are called). V ids,
S steps of all rows, B rows, T steps of the longest row, D columns.
"""

from collections.abc import Mapping, Sequence

import torch
from torchrec.sparse.jagged_tensor import JaggedTensor, KeyedJaggedTensor

from penstock.config.errors import DataError
from penstock.tensors.batch import BASE


def pool(vectors: torch.Tensor, lengths: torch.Tensor, is_mean: bool) -> torch.Tensor:
    """(V, D) -> (B, D): the sum or the mean of as many neighbours as `lengths` (B) says."""
    num_rows = lengths.shape[0]
    if vectors.shape[0] == num_rows and bool((lengths == 1).all()):
        return vectors
    rows_V = torch.repeat_interleave(lengths)
    total = vectors.new_zeros(num_rows, vectors.shape[1]).index_add(0, rows_V, vectors)
    return total / lengths.clamp(min=1).unsqueeze(1) if is_mean else total


def step_vectors(
    ids: JaggedTensor, step_counts: Mapping[str, KeyedJaggedTensor], feature: str, is_mean: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """Vectors of ids as vectors of steps (S, D), and the steps of each row (B).

    `step_counts` says how many ids each step holds, of features where that is not always one.
    """
    vectors, lengths = ids.values(), ids.lengths()
    counts = step_counts.get(BASE)
    if counts is None or feature not in counts.keys():  # noqa: SIM118
        return vectors, lengths.long()
    of_feature = counts[feature]
    return pool(vectors, of_feature.values(), is_mean), of_feature.lengths().long()


def join_steps(
    features: Sequence[str], vectors: Sequence[torch.Tensor], lengths: Sequence[torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The vectors of several features of the same steps side by side: (S, D), and the steps of each row (B).

    An empty sequence is empty for all: where one feature has no step, the one step that another has there is its
    default value, and is left out.
    """
    lengths_B = lengths[0]
    if all(torch.equal(lengths_B, others) for others in lengths[1:]):
        return torch.cat([each.float() for each in vectors], dim=1), lengths_B
    all_BF = torch.stack(list(lengths), dim=1)
    lengths_B, longest_B = all_BF.min(dim=1).values, all_BF.max(dim=1).values
    differ_B = (lengths_B != longest_B) & ((lengths_B > 0) | (longest_B > 1))
    if differ_B.any():
        row = int(differ_B.nonzero()[0])
        steps = dict(zip(features, all_BF[row].tolist(), strict=True))
        few, many = min(steps, key=lambda name: steps[name]), max(steps, key=lambda name: steps[name])
        raise DataError(
            f"row {row} of a batch: '{few}' has {steps[few]} steps, '{many}' has {steps[many]}; "
            "features of one sequence group have the same steps"
        )
    kept = [
        each[torch.repeat_interleave(lengths_B == own, own)].float()
        for each, own in zip(vectors, lengths, strict=True)
    ]
    return torch.cat(kept, dim=1), lengths_B


def pad_steps(vectors: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    """(S, D) -> (B, T, D), zeros behind the steps of a row; T is 1 at least."""
    longest = max(1, int(lengths.max())) if lengths.numel() else 1
    offsets = torch.ops.fbgemm.asynchronous_complete_cumsum(lengths)
    padded: torch.Tensor = torch.ops.fbgemm.jagged_to_padded_dense(vectors, [offsets], [longest], 0.0)
    return padded
