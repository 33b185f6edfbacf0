"""What a command needs from the run file beyond being valid."""

import logging
from collections.abc import Iterable, Iterator, Sequence

from penstock.config.errors import ConfigError, Problem, hint
from penstock.config.load import notices
from penstock.metrics.sections import Best, CustomMetric, best_value
from penstock.models.sections import MODELS, ModelConfig
from penstock.optim.sections.schedules import MetricMode, ReduceOnPlateauLR
from penstock.run.run_config import RunConfig, used_notices
from penstock.runtime.world import World
from penstock.training.best import smaller_is_better
from penstock.training.sections import EarlyStopping, TrainConfig

logger = logging.getLogger(__name__)

_FILLED_IN = ("model_dir", "model_config", "train_config")
"""Keys that YAML and JSON may leave out where there are features."""
NO_DIRECTION = "calibration is best at 1, neither large nor small; choose another metric, such as log_loss"
NEEDS_MODEL = "is required: feature_groups and one model"
NEEDS_TRAINING = "is required: how long to train, and with which optimizers"


def require_for_training(run: RunConfig) -> None:
    problems, train = _missing(run, "train_input_path", "model_dir"), run.train_config
    if train is None:
        problems.append(Problem("train_config", NEEDS_TRAINING))
    else:
        of_training = list(train.problems("cpu"))
        if of_training != list(train.problems("cuda")):
            # Importing torch takes seconds: it is asked for the device only where the answer depends on it.
            from penstock.distributed.groups import compute_device

            of_training = list(train.problems(compute_device(World.from_environment()).type))
        problems += of_training
        for path, options in train.optimizers():
            plateau = options.reduce_on_plateau_learning_rate
            if plateau is not None:
                problems += _of_learning(run, train, f"{path}.reduce_on_plateau_learning_rate", plateau)
    if run.eval_config.use_dense_ema and (train is None or train.dense_optimizer.ema is None):
        message = "is true, but no means are kept; add train_config.dense_optimizer.ema"
        problems.append(Problem("eval_config.use_dense_ema", message))
    if run.model is not None and run.model.task_towers:
        problems += run.model.unused_settings()
    problems += _of_model(run)
    if run.model is not None and run.export_config.model_fields_set:
        problems += _of_best_metric(run, run.model)
    if train is not None and train.early_stopping is not None:
        problems += _of_learning(run, train, "train_config.early_stopping", train.early_stopping)
    require_available(run, problems)
    model, metric = model_section(run), run.export_config.best_exporter_metric
    if run.eval_input_path and model.task_towers and not run.export_config.asks_for_best:
        # Towers never give the metric that is taken where none is named.
        known = model.results()
        if metric not in known:
            default = f"export_config.best_exporter_metric is {metric} where it is not written"
            logger.warning("no checkpoint will be the best: %s, and %s", default, _not_given(metric, known))


def require_for_evaluation(run: RunConfig) -> None:
    problems = [*_missing(run, "eval_input_path", "model_dir"), *_of_model(run)]
    if run.model is not None and run.export_config.model_fields_set:
        problems += _of_best_metric(run, run.model)
    require_available(run, problems)


def require_for_prediction(run: RunConfig) -> None:
    require_available(run, [*_missing(run, "model_dir"), *_of_model(run, with_labels=False)])


def require_available(run: RunConfig, problems: Sequence[Problem] = ()) -> None:
    """Refuse what this version checks but cannot do yet, all of it at once; without any, raise these problems.

    A model that is not available is refused alone: nothing else matters then.
    """
    problems = problems or _missing(run)
    if not run.feature_configs:  # then nothing else was filled in
        problems = [each for each in problems if each.path not in _FILLED_IN]
    unavailable = [each for each in used_notices(run, notices(run)) if each.kind == "later"]
    models = [each for each in unavailable if each.path[0] == "model_config" and each.path[-1] in MODELS]
    problems = [Problem(each.path, each.message) for each in models or unavailable] or problems
    if problems:
        raise ConfigError(problems)


def model_section(run: RunConfig) -> ModelConfig:
    if run.model is None:
        raise ConfigError.at("model_config", NEEDS_MODEL)
    return run.model


def train_section(run: RunConfig) -> TrainConfig:
    if run.train_config is None:
        raise ConfigError.at("train_config", NEEDS_TRAINING)
    return run.train_config


def scores_by_averages(run: RunConfig) -> bool:
    """Whether evaluation and prediction use running means: where they are kept, unless the run file says otherwise."""
    if run.eval_config.use_dense_ema is not None:
        return run.eval_config.use_dense_ema
    return run.train_config is not None and run.train_config.dense_optimizer.ema is not None


def _missing(run: RunConfig, *keys: str) -> list[Problem]:
    """The keys that a command needs and the run file lacks; what is no run at all is refused at once."""
    given: object = run
    if not isinstance(given, RunConfig):
        raise ConfigError(f"expected a run from penstock.load_run(path), not {type(given).__name__}")
    missing = [key for key in keys if not getattr(run, key)]
    return [Problem(key, f"is required by this command; set it, or give --{key}") for key in missing]


def _of_model(run: RunConfig, with_labels: bool = True) -> Iterator[Problem]:
    if not run.feature_configs:
        yield Problem("feature_configs", "is empty; a model needs features")
    if run.model is None:
        yield Problem("model_config", NEEDS_MODEL)
    elif not run.model.feature_groups:
        yield Problem("model_config.feature_groups", "is empty; a model needs a group of features")
    if with_labels and not run.data_config.label_fields:
        yield Problem("data_config.label_fields", "is empty; name the column with the label")
    if not with_labels or run.model is None or run.model.task_towers:
        return
    chosen = run.model.chosen("model")
    if chosen is not None and hasattr(chosen[1], "task_towers"):
        yield Problem(f"model_config.{chosen[0]}.task_towers", "is empty; name at least one task")
    elif not run.model.losses:
        yield Problem("model_config.losses", "is empty; binary_cross_entropy fits a label of 0 or 1")


def _of_learning(
    run: RunConfig, train: TrainConfig, path: str, section: ReduceOnPlateauLR | EarlyStopping
) -> Iterator[Problem]:
    """What learns from evaluations watches a metric that they give, and needs some before the end."""
    metric, mode = section.metric, section.mode
    if isinstance(section, ReduceOnPlateauLR):
        cure = f"; write mode: {'min' if mode is MetricMode.max else 'max'}"
        yield from _of_watched(run, metric, f"{path}.metric", mode, f"{path}.mode", cure)
    else:
        written = mode if "mode" in section.model_fields_set else None
        yield from _of_watched(run, metric, f"{path}.metric", written, f"{path}.mode")
        is_custom = run.model is not None and isinstance(run.model.results().get(metric), CustomMetric)
        if section.min_delta >= 1 and not is_custom and best_value(metric) is Best.max:
            message = f"is {section.min_delta}, but {metric} is between 0 and 1 and never gets so much better"
            yield Problem(f"{path}.min_delta", message)
    if not run.eval_input_path:
        yield Problem(path, "needs eval_input_path: without it nothing is evaluated")
    elif not train.evaluates_on_the_way():
        message = "learns from evaluations, which come only after the end; set train_config.eval_steps"
        yield Problem(path, message)


def _of_best_metric(run: RunConfig, model: ModelConfig) -> Iterator[Problem]:
    export = run.export_config
    written = "metric_larger_is_better" in export.model_fields_set
    if export.asks_for_best or (written and export.best_exporter_metric in model.results()):
        larger = export.metric_larger_is_better if written else None
        key, direction = "export_config.best_exporter_metric", "export_config.metric_larger_is_better"
        yield from _of_watched(run, export.best_exporter_metric, key, larger, direction)


def _of_watched(
    run: RunConfig,
    metric: str,
    key: str,
    direction: MetricMode | bool | None,
    direction_key: str,
    cure: str = "",
) -> Iterator[Problem]:
    """A metric that decides something is one that evaluation gives, and better in the written direction, if any is."""
    known = {} if run.model is None else run.model.results()
    losses = [] if run.model is None else run.model.loss_names()
    is_custom = isinstance(known.get(metric), CustomMetric)
    best = None if is_custom else best_value(metric)
    if known and metric not in known:
        yield Problem(key, _not_given(metric, known))
    elif best is Best.one:
        yield Problem(key, NO_DIRECTION)
    elif direction is not None and not is_custom:
        larger, shown = direction in (MetricMode.max, True), str(direction).lower()
        if larger and smaller_is_better(metric, losses):
            yield Problem(direction_key, f"is {shown}, but less {metric} is better{cure}")
        elif not larger and metric not in losses and best is Best.max:
            yield Problem(direction_key, f"is {shown}, but more {metric} is better{cure}")


def _not_given(name: str, known: Iterable[str]) -> str:
    """That evaluation has no number of this name, and which near ones it has: those of towers, where it is theirs."""
    of_towers = [each for each in known if each.startswith(f"{name}_")]
    near = f"of its towers it gives {', '.join(of_towers)}" if of_towers else hint(name, known)
    return f"evaluation does not give '{name}'; {near}"
