"""gradient_accumulation_steps: k batches that make one step are cut as one batch, k times as large.

Embedding tables update in every backward pass, so that k passes would be k updates: another algorithm, and for
optimizers with a state far from the asked one. One batch k times as large is what accumulation stands for, for
tables and for everything else, to the last bit; the memory plan counts with it.
"""

import logging

from penstock.pipeline.requirements import train_section
from penstock.pipeline.run_config import RunConfig

logger = logging.getLogger(__name__)


def with_joined_batches(run: RunConfig) -> RunConfig:
    """The run as it is computed: larger batches, and no accumulation any more. Evaluation keeps its batches."""
    train, data = train_section(run), run.data_config
    joined = train.gradient_accumulation_steps or 1
    if joined == 1:
        return run
    sizes = {
        name: getattr(data, name) * joined
        for name in ("batch_size", "batch_cost_size", "max_batch_rows")
        if getattr(data, name) is not None
    }
    sizes["eval_batch_size"] = data.resolved_eval_batch_size()
    logger.info(
        "gradient_accumulation_steps: a step takes %d batches as one, as batch_size: %d would",
        joined,
        sizes["batch_size"],
    )
    return run.model_copy(
        update={
            "data_config": data.model_copy(update=sizes),
            "train_config": train.model_copy(update={"gradient_accumulation_steps": None}),
        }
    )
