"""What schedules that follow evaluations ask of a run."""

from collections.abc import Iterator, Sequence

from penstock.config.errors import Problem
from penstock.config.nearest import hint
from penstock.loops.sections import TrainConfig
from penstock.optim.sections import ReduceOnPlateauLR, ScheduleOptions


def plateau_problems(train: TrainConfig | None, known: Sequence[str], evaluated: bool) -> Iterator[Problem]:
    """Reduce-on-plateau needs evaluations, and among the `known` names of their numbers the one that it watches."""
    for path, options in _schedules(train):
        chosen = options.chosen("learning_rate")
        if chosen is None or not isinstance(chosen[1], ReduceOnPlateauLR):
            continue
        place, metric = f"{path}.{chosen[0]}", chosen[1].metric
        if known and metric not in known:
            yield Problem(f"{place}.metric", f"evaluation does not give '{metric}'; {hint(metric, known)}")
        if not evaluated:
            yield Problem(place, "needs eval_input_path: without it nothing is evaluated")


def _schedules(train: TrainConfig | None) -> Iterator[tuple[str, ScheduleOptions]]:
    if train is None:
        return
    yield "train_config.sparse_optimizer", train.sparse_optimizer
    yield "train_config.dense_optimizer", train.dense_optimizer
    for index, part in enumerate(train.dense_optimizer.part_optimizers):
        yield f"train_config.dense_optimizer.part_optimizers[{index}]", part
