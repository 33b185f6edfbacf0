"""What a command needs from the run file beyond being right: said before anything is opened."""

import logging
from collections.abc import Iterator, Sequence

from penstock.config.check import notices
from penstock.config.errors import ConfigError, Problem
from penstock.config.registry import result_name
from penstock.config.section import Section
from penstock.loops.sections import TrainConfig
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.pipeline.averages import average_problems
from penstock.pipeline.deciding_metrics import (
    best_metric_problems,
    best_metric_remark,
    cadence_problems,
    early_stopping_problems,
)
from penstock.pipeline.device_checks import device_problems
from penstock.pipeline.idle_settings import idle_settings, idle_tower_settings
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.schedule_checks import plateau_problems, rate_problems

logger = logging.getLogger(__name__)


def require_for_training(run: RunConfig) -> None:
    """Everything that training needs is there and available; ConfigError lists what is not."""
    _require_run(run)
    _raise(
        [
            *_paths(run, "train_input_path", "model_dir"),
            *_train_config(run),
            *device_problems(run.train_config),
            *average_problems(run),
            *idle_settings(run.train_config),
            *idle_tower_settings(run.model),
            *rate_problems(run.train_config),
            *plateau_problems(
                run.train_config,
                result_names(run.model),
                loss_names(run.model),
                bool(run.eval_input_path),
                own_names(run.model),
            ),
            *_model(run),
            *_labels(run),
            *_best_metric(run),
            *_early_stopping(run),
        ]
    )
    require_available(run)
    _tell_of_best_metric(run)


def require_for_evaluation(run: RunConfig) -> None:
    """Everything that evaluation needs is there and available; ConfigError lists what is not."""
    _require_run(run)
    _raise([*_paths(run, "eval_input_path", "model_dir"), *_model(run), *_labels(run), *_best_metric(run)])
    require_available(run)


def require_for_prediction(run: RunConfig) -> None:
    """Everything that prediction needs is there and available; ConfigError lists what is not."""
    _require_run(run)
    _raise([*_paths(run, "model_dir"), *_model(run)])
    require_available(run)


def _raise(problems: list[Problem]) -> None:
    if problems:
        raise ConfigError(problems)


def require_available(run: RunConfig) -> None:
    """Refuse what this version checks but cannot do yet, all of it at once."""
    _require_run(run)
    _raise([*notices(run).later])


def _require_run(run: object) -> None:
    if not isinstance(run, RunConfig):
        raise ConfigError(f"expected a run from penstock.load_run(path), not {type(run).__name__}")


def model_section(run: RunConfig) -> ModelConfig:
    """The model of a run; a command that needs one says so."""
    if run.model is None:
        raise ConfigError.at("model_config", "is required: feature_groups and one model")
    return run.model


def train_section(run: RunConfig) -> TrainConfig:
    """How a run trains; a command that needs it says so."""
    if run.train_config is None:
        raise ConfigError.at("train_config", "is required: how long to train, and with which optimizers")
    return run.train_config


def _paths(run: RunConfig, *keys: str) -> Iterator[Problem]:
    for key in keys:
        if not getattr(run, key):
            yield Problem(key, f"is required by this command; set it, or give --{key}")


def _train_config(run: RunConfig) -> Iterator[Problem]:
    if run.train_config is None:
        yield Problem("train_config", "is required: how long to train, and with which optimizers")


def _model(run: RunConfig) -> Iterator[Problem]:
    if not run.feature_configs:
        yield Problem("feature_configs", "is empty; a model needs features")
    if run.model is None:
        yield Problem("model_config", "is required: feature_groups and one model")
    elif not run.model.feature_groups:
        yield Problem("model_config.feature_groups", "is empty; a model needs a group of features")


def _labels(run: RunConfig) -> Iterator[Problem]:
    if not run.data_config.label_fields:
        yield Problem("data_config.label_fields", "is empty; name the column with the label")
    if run.model is None or towers_of(run.model):
        return
    chosen = run.model.chosen("model")
    if chosen is not None and hasattr(chosen[1], "task_towers"):
        yield Problem(f"model_config.{chosen[0]}.task_towers", "is empty; name at least one task")
    elif not run.model.losses:
        yield Problem("model_config.losses", "is empty; binary_cross_entropy fits a label of 0 or 1")


def _best_metric(run: RunConfig) -> Iterator[Problem]:
    if run.model is not None:
        yield from best_metric_problems(
            run.export_config, result_names(run.model), loss_names(run.model), own_names(run.model)
        )


def _tell_of_best_metric(run: RunConfig) -> None:
    """Towers never give the metric that is taken where none is named."""
    if run.model is None or not run.eval_input_path or not towers_of(run.model):
        return
    remark = best_metric_remark(run.export_config, result_names(run.model))
    if remark is not None:
        logger.warning("%s", remark)


def _early_stopping(run: RunConfig) -> Iterator[Problem]:
    train = run.train_config
    if train is not None and train.early_stopping is not None:
        yield from early_stopping_problems(
            train.early_stopping, result_names(run.model), loss_names(run.model), own_names(run.model)
        )
        yield from cadence_problems(train, "train_config.early_stopping", bool(run.eval_input_path))


def loss_names(model: ModelConfig | None) -> list[str]:
    """The names of the losses among the results, with the tower's name."""
    if model is None:
        return []
    own = _names_of(model.losses, "loss")
    return own + [
        f"{name}_{tower.tower_name}" for tower in towers_of(model) for name in _names_of(tower.losses, "loss")
    ]


def own_names(model: ModelConfig | None) -> list[str]:
    """The names of metrics of one's own among the results, with the tower's name."""
    if model is None:
        return []
    places = [("", model.metrics), *((f"_{tower.tower_name}", tower.metrics) for tower in towers_of(model))]
    return [
        f"{metric.custom_metric.result_name}{suffix}"
        for suffix, metrics in places
        for metric in metrics
        if metric.custom_metric is not None
    ]


def result_names(model: ModelConfig | None) -> list[str]:
    """The names under which evaluation gives its numbers: metrics and losses, with the tower's name."""
    if model is None:
        return []
    own = _chosen_names(model)
    return own + [f"{name}_{tower.tower_name}" for tower in towers_of(model) for name in _chosen_names(tower)]


def _chosen_names(task: ModelConfig | TowerOptions) -> list[str]:
    return _names_of(task.metrics, "metric") + _names_of(task.losses, "loss")


def _names_of(sections: Sequence[Section], group: str) -> list[str]:
    chosen = [section.chosen(group) for section in sections]
    return [result_name(*each) for each in chosen if each is not None]


def towers_of(model: ModelConfig) -> list[TowerOptions]:
    """The towers of a multi-task model; none for others."""
    chosen = model.chosen("model")
    return getattr(chosen[1], "task_towers", []) if chosen is not None else []
