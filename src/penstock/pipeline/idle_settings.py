"""Settings of the training that are written, and change nothing as they stand: what they are missing."""

from collections.abc import Iterator

from penstock.config.errors import Problem
from penstock.loops.sections import TrainConfig
from penstock.models.sections import ModelConfig
from penstock.optim.sections import SparseOptimizer

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
