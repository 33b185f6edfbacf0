"""Sums over the rows of a session."""

import torch


def log_sum_by_session(logits_BK: torch.Tensor, sessions_B: torch.Tensor) -> torch.Tensor:
    """log(sum of exp) over the rows of each row's session, column by column: (B, K) -> (B, K).

    In O(B * K), not the square of B: the largest logit of each session is taken out before the exponentials.
    """
    _, places_B = torch.unique(sessions_B, return_inverse=True)
    places_BK = places_B.unsqueeze(1).expand_as(logits_BK)
    highest_BK = (
        torch.full_like(logits_BK, -torch.inf)
        .scatter_reduce(0, places_BK, logits_BK.detach(), "amax")
        .gather(0, places_BK)
    )
    sums_BK = torch.zeros_like(logits_BK).scatter_add(0, places_BK, (logits_BK - highest_BK).exp())
    return sums_BK.gather(0, places_BK).log() + highest_BK
