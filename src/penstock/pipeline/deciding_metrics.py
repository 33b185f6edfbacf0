"""The results of evaluation that decide something: which checkpoint is the best, and when to stop.

`known` are the names under which evaluation gives its numbers, `losses` those of losses, and `own` those of metrics of
one's own, of which no name says which way is better.
"""

from collections.abc import Collection, Iterator, Sequence

from penstock.config.errors import Problem
from penstock.config.nearest import hint
from penstock.export.sections import ExportConfig
from penstock.loops.sections import EarlyStopping, TrainConfig
from penstock.metrics.sections import Best, best_value
from penstock.optim.sections.schedules import MetricMode
from penstock.pipeline.best import smaller_is_better

BEST_METRIC = "export_config.best_exporter_metric"
NO_DIRECTION = "calibration is best at 1, neither large nor small; choose another metric, such as log_loss"


def best_metric_problems(
    export: ExportConfig, known: Sequence[str], losses: Sequence[str], own: Collection[str] = ()
) -> Iterator[Problem]:
    """A metric that picks the best checkpoint, where one is asked for, must be one that evaluation gives."""
    name, larger = export.best_exporter_metric, export.metric_larger_is_better
    if _asks_for_best(export) and name not in known:
        yield Problem(BEST_METRIC, not_given(name, known))
    if _asks_for_best(export) and has_no_direction(name, own):
        yield Problem(BEST_METRIC, NO_DIRECTION)
    elif "metric_larger_is_better" in export.model_fields_set:
        problem = wrong_direction(name, larger, losses, own)
        if problem is not None:
            yield Problem("export_config.metric_larger_is_better", f"is {str(larger).lower()}, but {problem}")


def best_metric_remark(export: ExportConfig, known: Sequence[str]) -> str | None:
    """What to say of a run that does not ask for the best, and would have none when it is asked for one later."""
    if _asks_for_best(export) or export.best_exporter_metric in known:
        return None
    metric = export.best_exporter_metric
    default = f"{BEST_METRIC} is {metric} where it is not written"
    return f"no checkpoint will be the best: {default}, and {not_given(metric, known)}"


def early_stopping_problems(
    section: EarlyStopping, known: Sequence[str], losses: Sequence[str], own: Collection[str] = ()
) -> Iterator[Problem]:
    """What decides when to stop must be a metric that evaluation gives, and be able to get better."""
    if known and section.metric not in known:
        yield Problem("train_config.early_stopping.metric", not_given(section.metric, known))
    if has_no_direction(section.metric, own):
        yield Problem("train_config.early_stopping.metric", NO_DIRECTION)
    elif "mode" in section.model_fields_set:
        problem = wrong_direction(section.metric, section.mode is MetricMode.max, losses, own)
        if problem is not None:
            yield Problem("train_config.early_stopping.mode", f"is {section.mode}, but {problem}")
    if section.min_delta >= 1 and section.metric not in own and best_value(section.metric) is Best.max:
        message = (
            f"is {section.min_delta}, but {section.metric} is between 0 and 1 and never gets so much better"
        )
        yield Problem("train_config.early_stopping.min_delta", message)


def cadence_problems(train: TrainConfig, path: str, evaluated: bool) -> Iterator[Problem]:
    """What learns from evaluations at `path` needs some before the end."""
    if not evaluated:
        yield Problem(path, "needs eval_input_path: without it nothing is evaluated")
    elif not evaluates_on_the_way(train):
        yield Problem(
            path,
            "learns from evaluations, which come only after the end; set train_config.eval_steps",
        )


def evaluates_on_the_way(train: TrainConfig) -> bool:
    """Whether the turn of an evaluation may come; the run file does not say how many steps an epoch has."""
    steps = train.eval_steps or train.save_checkpoints_steps
    epochs = 0 if train.eval_steps else train.save_checkpoints_epochs or 0
    in_steps = steps > 0 and (train.num_steps is None or steps <= train.num_steps)
    in_epochs = epochs > 0 and (train.num_epochs is None or epochs <= train.num_epochs)
    return in_steps or in_epochs


def has_no_direction(metric: str, own: Collection[str]) -> bool:
    """Whether neither more nor less of it is better."""
    return metric not in own and best_value(metric) is Best.one


def wrong_direction(
    metric: str, larger: bool, losses: Sequence[str], own: Collection[str] = ()
) -> str | None:
    """What a name says against this direction; None where it says nothing, as that of a metric of one's own."""
    if metric in own:
        return None
    if larger and smaller_is_better(metric, losses):
        return f"less {metric} is better"
    if not larger and metric not in losses and best_value(metric) is Best.max:
        return f"more {metric} is better"
    return None


def not_given(name: str, known: Sequence[str]) -> str:
    """That evaluation has no number of this name, and which near ones it has: those of towers, where it is theirs."""
    of_towers = [each for each in known if each.startswith(f"{name}_")]
    near = f"of its towers it gives {', '.join(of_towers)}" if of_towers else hint(name, known)
    return f"evaluation does not give '{name}'; {near}"


def _asks_for_best(export: ExportConfig) -> bool:
    return export.exporter_type == "best" or "best_exporter_metric" in export.model_fields_set
