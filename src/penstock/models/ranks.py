"""Losses of one step over the rows of all ranks.

Ranks average the gradients of their own losses. So a rank's loss counts by what its rows weigh beside the mean of all
ranks: then the average is the loss of one process with all rows, whoever has more of them or heavier ones. What
ranks exchange for it is known before the step: one number for each task.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from penstock.models.task import Task
from penstock.runtime.collectives import Collectives
from penstock.tensors.batch import Batch


def with_step_shares(batch: Batch, tasks: Sequence[Task], collectives: Collectives) -> Batch:
    """The batch with what its rows weigh in each task, beside the mean of all ranks; every rank must call."""
    own = np.array([task.weight_of(batch) for task in tasks])
    *weights, num_ranks = collectives.sum(np.append(own, 1.0))
    shares = own * num_ranks / np.where(np.array(weights) == 0, 1.0, weights)
    return replace(
        batch,
        step_shares={
            task.suffix: torch.tensor(share, dtype=torch.float32)
            for task, share in zip(tasks, shares, strict=True)
        },
    )
