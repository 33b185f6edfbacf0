"""What a command needs from the run file beyond being valid."""

import logging
from collections.abc import Iterator

from penstock.config.check import notices
from penstock.config.errors import ConfigError, Problem
from penstock.config.nearest import hint
from penstock.metrics.sections import Best, best_value
from penstock.models.sections import ModelConfig
from penstock.optim.sections.schedules import (
    MetricMode,
    ReduceOnPlateauLR,
    minimum_problem,
    warm_up_problem,
)
from penstock.run.run_config import RunConfig
from penstock.runtime.world import World
from penstock.training.best import smaller_is_better
from penstock.training.sections import TrainConfig

logger = logging.getLogger(__name__)

NO_DIRECTION = "calibration is best at 1, neither large nor small; choose another metric, such as log_loss"
NEEDS_MODEL = "is required: feature_groups and one model"
NEEDS_TRAINING = "is required: how long to train, and with which optimizers"


def require_for_training(run: RunConfig) -> None:
    """Everything that training needs is there and available; ConfigError lists what is not."""
    problems = _paths(run, "train_input_path", "model_dir")
    if run.train_config is None:
        problems.append(Problem("train_config", NEEDS_TRAINING))
    else:
        problems += _of_device(run.train_config)
        problems += run.train_config.unused_settings()
    if run.eval_config.use_dense_ema and not _keeps_averages(run):
        message = "is true, but no means are kept; add train_config.dense_optimizer.ema"
        problems.append(Problem("eval_config.use_dense_ema", message))
    if run.model is not None:
        problems += run.model.unused_settings()
    problems += [*_of_rates(run), *_of_plateaus(run)]
    problems += [*_model(run), *_labels(run), *_best_metric(run), *_early_stopping(run)]
    require_available(run, problems)
    _warn_of_no_best(run)


def require_for_evaluation(run: RunConfig) -> None:
    """Everything that evaluation needs is there and available; ConfigError lists what is not."""
    problems = [*_paths(run, "eval_input_path", "model_dir"), *_model(run), *_labels(run), *_best_metric(run)]
    require_available(run, problems)


def require_for_prediction(run: RunConfig) -> None:
    """Everything that prediction needs is there and available; ConfigError lists what is not."""
    require_available(run, [*_paths(run, "model_dir"), *_model(run)])


def require_available(run: RunConfig, problems: list[Problem] | None = None) -> None:
    """Raise these problems; without any, refuse what this version checks but cannot do yet, all of it at once."""
    _require_run(run)
    if not problems:
        problems = list(notices(run).later)
    if problems:
        raise ConfigError(problems)


def model_section(run: RunConfig) -> ModelConfig:
    """The model of a run; a command that needs one says so."""
    if run.model is None:
        raise ConfigError.at("model_config", NEEDS_MODEL)
    return run.model


def train_section(run: RunConfig) -> TrainConfig:
    """How a run trains; a command that needs it says so."""
    if run.train_config is None:
        raise ConfigError.at("train_config", NEEDS_TRAINING)
    return run.train_config


def scores_by_averages(run: RunConfig) -> bool:
    """Whether evaluation and prediction use running means: where they are kept, unless the run file says otherwise."""
    chosen = run.eval_config.use_dense_ema
    return _keeps_averages(run) if chosen is None else chosen


def _require_run(run: object) -> None:
    if not isinstance(run, RunConfig):
        raise ConfigError(f"expected a run from penstock.load_run(path), not {type(run).__name__}")


def _keeps_averages(run: RunConfig) -> bool:
    return run.train_config is not None and run.train_config.dense_optimizer.ema is not None


def _paths(run: RunConfig, *keys: str) -> list[Problem]:
    _require_run(run)
    missing = [key for key in keys if not getattr(run, key)]
    return [Problem(key, f"is required by this command; set it, or give --{key}") for key in missing]


def _of_device(train: TrainConfig) -> Iterator[Problem]:
    """What this process cannot do with its device; torch is asked for it only where the answer depends on it."""
    if train.sparse_optimizer is None:
        return
    device_type = "cpu"
    if train.sparse_optimizer.needs_device():
        from penstock.distributed.groups import compute_device

        device_type = compute_device(World.from_environment()).type
    yield from train.sparse_optimizer.problems(device_type)


def _model(run: RunConfig) -> Iterator[Problem]:
    if not run.feature_configs:
        yield Problem("feature_configs", "is empty; a model needs features")
    if run.model is None:
        yield Problem("model_config", NEEDS_MODEL)
    elif not run.model.feature_groups:
        yield Problem("model_config.feature_groups", "is empty; a model needs a group of features")


def _labels(run: RunConfig) -> Iterator[Problem]:
    if not run.data_config.label_fields:
        yield Problem("data_config.label_fields", "is empty; name the column with the label")
    if run.model is None or run.model.task_towers:
        return
    chosen = run.model.chosen("model")
    if chosen is not None and hasattr(chosen[1], "task_towers"):
        yield Problem(f"model_config.{chosen[0]}.task_towers", "is empty; name at least one task")
    elif not run.model.losses:
        yield Problem("model_config.losses", "is empty; binary_cross_entropy fits a label of 0 or 1")


def _of_rates(run: RunConfig) -> Iterator[Problem]:
    """No schedule has a minimum above its base rate, or a warm-up that falls or has no steps."""
    train = run.train_config
    for path, options in () if train is None else train.optimizers():
        schedule, optimizer = options.chosen("learning_rate"), options.chosen("optimizer")
        if schedule is None or optimizer is None:
            continue
        name, base = f"{optimizer[0]}.lr", optimizer[1].lr
        problem = minimum_problem(schedule[1], base, name)
        if problem is not None:
            yield Problem(f"{path}.{schedule[0]}.min_learning_rate", problem)
        problem = warm_up_problem(schedule[1], base, name)
        if problem is not None:
            yield Problem(f"{path}.{schedule[0]}.warmup_learning_rate", problem)


def _of_plateaus(run: RunConfig) -> Iterator[Problem]:
    """Reduce-on-plateau needs evaluations, and among their numbers the one that it watches, in its direction."""
    train = run.train_config
    for path, options in () if train is None else train.optimizers():
        schedule = options.chosen("learning_rate")
        if train is None or schedule is None or not isinstance(schedule[1], ReduceOnPlateauLR):
            continue
        place, metric, mode = f"{path}.{schedule[0]}", schedule[1].metric, schedule[1].mode
        known = [] if run.model is None else run.model.result_names()
        if known and metric not in known:
            yield Problem(f"{place}.metric", _not_given(metric, known))
        elif _has_no_direction(metric, run.model):
            yield Problem(f"{place}.metric", NO_DIRECTION)
        elif problem := _wrong_direction(metric, mode is MetricMode.max, run.model):
            other = "min" if mode is MetricMode.max else "max"
            yield Problem(f"{place}.mode", f"is {mode}, but {problem}; write mode: {other}")
        yield from _evaluations(run, train, place)


def _early_stopping(run: RunConfig) -> Iterator[Problem]:
    """What decides when to stop must be a metric that evaluation gives, and be able to get better."""
    train, path = run.train_config, "train_config.early_stopping"
    section = None if train is None else train.early_stopping
    if train is None or section is None:
        return
    metric, known = section.metric, [] if run.model is None else run.model.result_names()
    if known and metric not in known:
        yield Problem(f"{path}.metric", _not_given(metric, known))
    if _has_no_direction(metric, run.model):
        yield Problem(f"{path}.metric", NO_DIRECTION)
    elif "mode" in section.model_fields_set:
        problem = _wrong_direction(metric, section.mode is MetricMode.max, run.model)
        if problem is not None:
            yield Problem(f"{path}.mode", f"is {section.mode}, but {problem}")
    if section.min_delta >= 1 and not _is_custom(metric, run.model) and best_value(metric) is Best.max:
        message = f"is {section.min_delta}, but {metric} is between 0 and 1 and never gets so much better"
        yield Problem(f"{path}.min_delta", message)
    yield from _evaluations(run, train, path)


def _evaluations(run: RunConfig, train: TrainConfig, path: str) -> Iterator[Problem]:
    """What learns from evaluations at `path` needs some before the end."""
    if not run.eval_input_path:
        yield Problem(path, "needs eval_input_path: without it nothing is evaluated")
    elif not train.evaluates_on_the_way():
        message = "learns from evaluations, which come only after the end; set train_config.eval_steps"
        yield Problem(path, message)


def _best_metric(run: RunConfig) -> Iterator[Problem]:
    """A metric that picks the best checkpoint, where one is asked for, must be one that evaluation gives."""
    if run.model is None:
        return
    path, export, known = "export_config.best_exporter_metric", run.export_config, run.model.result_names()
    metric, larger = export.best_exporter_metric, export.metric_larger_is_better
    if _asks_for_best(run) and metric not in known:
        yield Problem(path, _not_given(metric, known))
    if _asks_for_best(run) and _has_no_direction(metric, run.model):
        yield Problem(path, NO_DIRECTION)
    elif "metric_larger_is_better" in export.model_fields_set:
        problem = _wrong_direction(metric, larger, run.model)
        if problem is not None:
            yield Problem("export_config.metric_larger_is_better", f"is {str(larger).lower()}, but {problem}")


def _warn_of_no_best(run: RunConfig) -> None:
    """Towers never give the metric that is taken where none is named."""
    if run.model is None or not run.eval_input_path or not run.model.task_towers or _asks_for_best(run):
        return
    metric, known = run.export_config.best_exporter_metric, run.model.result_names()
    if metric not in known:
        default = f"export_config.best_exporter_metric is {metric} where it is not written"
        logger.warning("no checkpoint will be the best: %s, and %s", default, _not_given(metric, known))


def _asks_for_best(run: RunConfig) -> bool:
    export = run.export_config
    return export.exporter_type == "best" or "best_exporter_metric" in export.model_fields_set


def _is_custom(metric: str, model: ModelConfig | None) -> bool:
    return model is not None and metric in model.custom_metric_names()


def _has_no_direction(metric: str, model: ModelConfig | None) -> bool:
    """Whether neither more nor less of it is better."""
    return not _is_custom(metric, model) and best_value(metric) is Best.one


def _wrong_direction(metric: str, larger: bool, model: ModelConfig | None) -> str | None:
    """What a name says against this direction; None where it says nothing, as that of a custom metric."""
    if _is_custom(metric, model):
        return None
    losses = [] if model is None else model.loss_names()
    if larger and smaller_is_better(metric, losses):
        return f"less {metric} is better"
    if not larger and metric not in losses and best_value(metric) is Best.max:
        return f"more {metric} is better"
    return None


def _not_given(name: str, known: list[str]) -> str:
    """That evaluation has no number of this name, and which near ones it has: those of towers, where it is theirs."""
    of_towers = [each for each in known if each.startswith(f"{name}_")]
    near = f"of its towers it gives {', '.join(of_towers)}" if of_towers else hint(name, known)
    return f"evaluation does not give '{name}'; {near}"
