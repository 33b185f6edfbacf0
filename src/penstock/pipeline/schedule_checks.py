"""What learning-rate schedules ask of the optimizer that they stand beside, and of the run."""

from collections.abc import Iterator, Sequence

from penstock.config.errors import Problem
from penstock.loops.sections import TrainConfig
from penstock.optim.sections import MetricMode, ReduceOnPlateauLR, SparseOptimizer, minimum_problem
from penstock.optim.sections.dense import DenseOptimizerOptions
from penstock.pipeline.best import smaller_is_better
from penstock.pipeline.deciding_metrics import not_given


def minimum_problems(train: TrainConfig | None) -> Iterator[Problem]:
    """No schedule has a minimum above the rate that it starts from."""
    for path, options in _schedules(train):
        schedule, optimizer = options.chosen("learning_rate"), options.chosen("optimizer")
        if schedule is None or optimizer is None:
            continue
        problem = minimum_problem(schedule[1], optimizer[1].lr, f"{optimizer[0]}.lr")
        if problem is not None:
            yield Problem(f"{path}.{schedule[0]}.min_learning_rate", problem)


def plateau_problems(
    train: TrainConfig | None, known: Sequence[str], losses: Sequence[str], evaluated: bool
) -> Iterator[Problem]:
    """Reduce-on-plateau needs evaluations, and among the `known` names of their numbers the one that it watches.

    Less of the `losses` and of some metrics is better, which `mode` has to say.
    """
    for path, options in _schedules(train):
        chosen = options.chosen("learning_rate")
        if chosen is None or not isinstance(chosen[1], ReduceOnPlateauLR):
            continue
        place, metric = f"{path}.{chosen[0]}", chosen[1].metric
        if known and metric not in known:
            yield Problem(f"{place}.metric", not_given(metric, known))
        elif chosen[1].mode is MetricMode.max and smaller_is_better(metric, losses):
            yield Problem(f"{place}.mode", f"is max, but less {metric} is better; write mode: min")
        if not evaluated:
            yield Problem(place, "needs eval_input_path: without it nothing is evaluated")


def _schedules(train: TrainConfig | None) -> Iterator[tuple[str, SparseOptimizer | DenseOptimizerOptions]]:
    if train is None:
        return
    yield "train_config.sparse_optimizer", train.sparse_optimizer
    yield "train_config.dense_optimizer", train.dense_optimizer
    for index, part in enumerate(train.dense_optimizer.part_optimizers):
        yield f"train_config.dense_optimizer.part_optimizers[{index}]", part
