"""What learning-rate schedules ask of the optimizer that they stand beside, and of the run."""

from collections.abc import Collection, Iterator, Sequence

from penstock.config.errors import Problem
from penstock.loops.sections import TrainConfig
from penstock.optim.sections import DenseOptimizerOptions, SparseOptimizer
from penstock.optim.sections.schedules import (
    MetricMode,
    ReduceOnPlateauLR,
    minimum_problem,
    warm_up_problem,
)
from penstock.pipeline.deciding_metrics import (
    NO_DIRECTION,
    cadence_problems,
    has_no_direction,
    not_given,
    wrong_direction,
)


def rate_problems(train: TrainConfig | None) -> Iterator[Problem]:
    """No schedule has a minimum above its base rate, or a warm-up that falls or has no steps."""
    for path, options in _schedules(train):
        schedule, optimizer = options.chosen("learning_rate"), options.chosen("optimizer")
        if schedule is None or optimizer is None:
            continue
        problem = minimum_problem(schedule[1], optimizer[1].lr, f"{optimizer[0]}.lr")
        if problem is not None:
            yield Problem(f"{path}.{schedule[0]}.min_learning_rate", problem)
        warm_up = warm_up_problem(schedule[1], optimizer[1].lr, f"{optimizer[0]}.lr")
        if warm_up is not None:
            yield Problem(f"{path}.{schedule[0]}.warmup_learning_rate", warm_up)


def plateau_problems(
    train: TrainConfig | None,
    known: Sequence[str],
    losses: Sequence[str],
    evaluated: bool,
    own: Collection[str] = (),
) -> Iterator[Problem]:
    """Reduce-on-plateau needs evaluations, and among the `known` names of their numbers the one that it watches.

    Less of the `losses` and of some metrics is better, which `mode` has to say; of those of one's `own` either may be.
    """
    if train is None:
        return
    for path, options in _schedules(train):
        chosen = options.chosen("learning_rate")
        if chosen is None or not isinstance(chosen[1], ReduceOnPlateauLR):
            continue
        place, metric = f"{path}.{chosen[0]}", chosen[1].metric
        if known and metric not in known:
            yield Problem(f"{place}.metric", not_given(metric, known))
        elif has_no_direction(metric, own):
            yield Problem(f"{place}.metric", NO_DIRECTION)
        elif problem := wrong_direction(metric, chosen[1].mode is MetricMode.max, losses, own):
            other = "min" if chosen[1].mode is MetricMode.max else "max"
            yield Problem(f"{place}.mode", f"is {chosen[1].mode}, but {problem}; write mode: {other}")
        yield from cadence_problems(train, place, evaluated)


def _schedules(train: TrainConfig | None) -> Iterator[tuple[str, SparseOptimizer | DenseOptimizerOptions]]:
    if train is None:
        return
    if train.sparse_optimizer is not None:
        yield "train_config.sparse_optimizer", train.sparse_optimizer
    yield "train_config.dense_optimizer", train.dense_optimizer
    for index, part in enumerate(train.dense_optimizer.part_optimizers):
        yield f"train_config.dense_optimizer.part_optimizers[{index}]", part
