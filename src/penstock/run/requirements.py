"""What a command needs from the run file beyond being valid."""

import logging
from collections.abc import Collection, Iterator, Sequence

from penstock.config.custom import result_name
from penstock.config.errors import ConfigError, Problem
from penstock.config.nearest import hint
from penstock.config.notices import notices
from penstock.config.paths import format_path
from penstock.config.section import Section
from penstock.export.sections import ExportConfig
from penstock.metrics.sections import Best, best_value
from penstock.models.sections import ModelConfig
from penstock.models.sections.towers import TowerOptions
from penstock.optim.sections import DenseOptimizerOptions, SparseOptimizer
from penstock.optim.sections.schedules import MetricMode, ReduceOnPlateauLR, minimum_problem, warm_up_problem
from penstock.run.best import smaller_is_better
from penstock.run.run_config import RunConfig
from penstock.runtime.world import World
from penstock.training.sections import EarlyStopping, TrainConfig

logger = logging.getLogger(__name__)


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


def device_problems(train: TrainConfig | None) -> Iterator[Problem]:
    """What this process cannot do with its device; torch is asked for it only where the answer depends on it."""
    if train is None:
        return
    if train.sparse_optimizer is not None:
        yield from _table_problems(train.sparse_optimizer)
    if train.grad_scaler is not None and train.mixed_precision != "FP16":
        message = "scales losses of FP16 alone; set mixed_precision: FP16, or leave it out"
        yield Problem("train_config.grad_scaler", message)


def _table_problems(section: SparseOptimizer) -> Iterator[Problem]:
    device_type = "cpu"
    if section.needs_device():
        from penstock.distributed.groups import compute_device

        device_type = compute_device(World()).type
    yield from section.problems(device_type)


_SPARSE = "train_config.sparse_optimizer"


def idle_settings(train: TrainConfig | None) -> Iterator[Problem]:
    """Everything of train_config that waits for another setting."""
    if train is None:
        return
    yield from _fine_tuning(train)
    yield from _clipping(train)
    yield from _histograms(train)
    yield from _of_tables(train.sparse_optimizer)


def idle_tower_settings(model: ModelConfig | None) -> Iterator[Problem]:
    """Weights of towers that wait for what they weigh."""
    chosen = None if model is None else model.chosen("model")
    if model is None or chosen is None:
        return
    for index, tower in enumerate(getattr(chosen[1], "task_towers", [])):
        place = f"model_config.{chosen[0]}.task_towers[{index}]"
        if tower.pareto_min_loss_weight and not model.use_pareto_loss_weight:
            message = "is for weights that are found; set model_config.use_pareto_loss_weight: true, or leave it out"
            yield Problem(f"{place}.pareto_min_loss_weight", message)
        for name in ("in_task_space_weight", "out_task_space_weight"):
            if getattr(tower, name) != 1 and not tower.task_space_indicator_label:
                yield Problem(
                    f"{place}.{name}", "needs task_space_indicator_label, which tells the rows of the space"
                )


def _fine_tuning(train: TrainConfig) -> Iterator[Problem]:
    if train.fine_tune_ckpt_param_map and not train.fine_tune_checkpoint:
        message = "names parameters of train_config.fine_tune_checkpoint, which is not set"
        yield Problem("train_config.fine_tune_ckpt_param_map", message)


def _clipping(train: TrainConfig) -> Iterator[Problem]:
    section = train.grad_clipping
    if section is not None and section.model_fields_set and "clipping_type" not in section.model_fields_set:
        message = "is none where it is not written, so that nothing is clipped; write norm or value"
        yield Problem("train_config.grad_clipping.clipping_type", message)


def _histograms(train: TrainConfig) -> Iterator[Problem]:
    if train.histogram_steps and not {"parameter", "gradient"} & set(train.tensorboard_summaries):
        message = "writes nothing without parameter or gradient in train_config.tensorboard_summaries"
        yield Problem("train_config.histogram_steps", message)


def _of_tables(section: SparseOptimizer | None) -> Iterator[Problem]:
    chosen = None if section is None else section.chosen("optimizer")
    if chosen is None:
        return
    name, options = chosen
    if "max_gradient" in options.model_fields_set and not options.gradient_clipping:
        yield Problem(f"{_SPARSE}.{name}.max_gradient", "bounds nothing without gradient_clipping: true")


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
    later = [notice for notice in notices(run).later if not notice.harmless]
    _raise([Problem(format_path(notice.path), notice.text) for notice in later])


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
