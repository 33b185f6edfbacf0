"""When the running means of the dense parameters stand in for the parameters."""

from collections.abc import Iterator

from penstock.config.errors import Problem
from penstock.pipeline.run_config import RunConfig


def scores_by_averages(run: RunConfig) -> bool:
    """Whether evaluation and prediction use the means: where there are any, unless the run file says otherwise."""
    wanted = run.eval_config.use_dense_ema
    return _are_kept(run) if wanted is None else wanted


def average_problems(run: RunConfig) -> Iterator[Problem]:
    """Means that are asked for must be kept."""
    if run.eval_config.use_dense_ema and not _are_kept(run):
        message = "is true, but no means are kept; add train_config.dense_optimizer.ema"
        yield Problem("eval_config.use_dense_ema", message)


def _are_kept(run: RunConfig) -> bool:
    return run.train_config is not None and run.train_config.dense_optimizer.ema is not None
