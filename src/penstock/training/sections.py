"""train_config and eval_config: how long, how often, and how exactly."""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from penstock.config.errors import Problem, hint
from penstock.config.section import Ignored, Later, Probability, Refused, Section, words
from penstock.features.sections.tables import ParameterConstraints
from penstock.optim.sections import DenseOptimizer, DenseOptimizerOptions, SparseOptimizer
from penstock.optim.sections.schedules import MetricMode, rate_problems

SUMMARIES = ("loss", "learning_rate", "parameter", "global_gradient_norm", "gradient_norm", "gradient")
"""What TensorBoard files may hold."""


SPARSE_OPTIMIZER = {"adagrad_optimizer": {"lr": 0.03}}
DENSE_OPTIMIZER = {"adam_optimizer": {"lr": 0.001}}
"""What learns where a file may leave it out."""

MAX_SCALE = 2.0**100
"""The largest first scale, far from the end of float32."""


class GradScaler(Section):
    """Keeps small gradients of FP16 above zero."""

    init_scale: Annotated[float, Field(gt=0, le=MAX_SCALE)] = 65536.0
    """First factor on the loss."""

    growth_factor: Annotated[float, Field(gt=1)] = 2.0
    """What it is multiplied by after growth_interval steps without overflow."""

    backoff_factor: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """What it is multiplied by after an overflow."""

    growth_interval: PositiveInt = 2000
    """Steps without overflow before it grows."""


class GradClipping(Section):
    """Keeps large gradients in bounds."""

    clipping_type: Annotated[str, words("none", "norm", "value")] = "none"
    """norm, value, or none."""

    max_gradient: PositiveFloat = 1.0
    """The bound."""

    norm_type: PositiveFloat = 2.0
    """Which norm."""

    enable_global_grad_clip: bool = False
    """One norm over all ranks."""


class DeltaEmbeddingQuantType(StrEnum):
    """Of the old schema."""

    DELTA_EMBEDDING_QUANT_NONE = "DELTA_EMBEDDING_QUANT_NONE"
    DELTA_EMBEDDING_QUANT_INT8 = "DELTA_EMBEDDING_QUANT_INT8"


class FeatureStoreConfig(Section):
    """Upload to a feature store: of the old schema, accepted and ignored."""

    region: str
    project_name: str
    feature_view_name: str
    version: str
    endpoint: str | None = None
    upload_batch_size: int = 1000
    max_retries: int = 3
    retry_backoff_secs: int = 5
    shutdown_timeout_secs: int = 600
    max_pending_steps: int = 32
    poll_interval_secs: int = 1
    feature_view_ttl_secs: int = 1296000
    feature_view_shard_count: int = 20
    feature_view_replication_count: int = 1
    retain_local_dump: bool = False
    upload_format: str = "ARROW"


class DeltaEmbeddingDumpConfig(Section):
    """Dump of changed embeddings: of the old schema, accepted and ignored."""

    dump_interval_steps: int = 1000
    output_dir: str | None = None
    file_prefix: str = "delta_embedding"
    feature_store_config: FeatureStoreConfig | None = None
    dump_interval_minutes: int | None = None
    quant_type: DeltaEmbeddingQuantType = DeltaEmbeddingQuantType.DELTA_EMBEDDING_QUANT_NONE


class EarlyStopping(Section):
    """Stops when an evaluation metric gets no better."""

    metric: str
    """Which metric."""

    patience: PositiveInt = 3
    """Evaluations without improvement that are waited for."""

    min_delta: NonNegativeFloat = 0.0
    """Less than this is no improvement."""

    mode: MetricMode = MetricMode.max
    """Which direction is better; not written: min for losses and metrics such as log_loss, else max."""

    restore_best: bool = True
    """End with the best parameters, not the last."""


class OnNonfinite(StrEnum):
    """What happens when the loss is not a finite number."""

    error = "error"
    skip = "skip"


def _known_summaries(names: Sequence[str]) -> Sequence[str]:
    for name in names:
        if name not in SUMMARIES:
            raise ValueError(f"has '{name}'; {hint(name, SUMMARIES)}")
    return names


_TIMESTAMPS = Refused(
    "saving by the data's timestamps is not supported; use save_checkpoints_steps or _epochs"
)


class TrainConfig(Section):
    """How long to train, how often to save, and with what."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"length": ("num_steps", "num_epochs")}

    sparse_optimizer: SparseOptimizer | None = None
    """How embedding tables learn; YAML and JSON: adagrad_optimizer with lr 0.03 where there are tables."""

    dense_optimizer: DenseOptimizer = Field(
        default_factory=lambda: DenseOptimizer.model_validate(DENSE_OPTIMIZER)
    )
    """How everything else learns; YAML and JSON: adam_optimizer with lr 0.001 where it is absent."""

    num_steps: PositiveInt | None = None
    """Train this many steps; or say num_epochs."""

    num_epochs: PositiveInt | None = None
    """Train this many times over the data; or say num_steps. Neither: once."""

    seed: int = 0
    """Where parameters start, and what dropout drops."""

    save_checkpoints_steps: NonNegativeInt = 1000
    """Save every so many steps; 0: never by steps."""

    save_checkpoints_epochs: NonNegativeInt | None = None
    """Save every so many epochs."""

    keep_checkpoint_max: NonNegativeInt = 0
    """Keep the newest of these, and the best; 0: all."""

    eval_steps: PositiveInt | None = None
    """Evaluate every so many steps; absent: after each save."""

    log_step_count_steps: PositiveInt = 100
    """Log every so many steps."""

    fine_tune_checkpoint: str | None = None
    """Start from the parameters of this checkpoint, of this run (RUN), or of the best of a run (RUN/best)."""

    fine_tune_ckpt_param_map: str | None = None
    """File with lines 'current old': names of parameters that were called otherwise."""

    early_stopping: EarlyStopping | None = None
    """Stop when a metric gets no better."""

    on_nonfinite: OnNonfinite = OnNonfinite.error
    """A loss that is not finite: an error with the rows written aside, or skipped and counted."""

    max_skipped_in_a_row: PositiveInt = 20
    """With on_nonfinite: skip, so many skipped batches in a row are an error: no later one would be better."""

    use_tensorboard: bool = True
    """Write TensorBoard files."""

    tensorboard_summaries: Annotated[list[str], AfterValidator(_known_summaries)] = ["loss", "learning_rate"]
    """What they hold: loss, learning_rate, parameter, global_gradient_norm, gradient_norm, gradient."""

    histogram_steps: PositiveInt | None = None
    """Write histograms every so many steps; absent: never."""

    is_profiling: bool = False
    """Write a trace of ten steps into model_dir/profile, and the dearest operators into the log."""

    mixed_precision: Annotated[str | None, words("", "BF16", "FP16")] = None
    """BF16 or FP16 for what a model computes in training; absent: float32."""

    grad_scaler: GradScaler | None = None
    """How losses are scaled with FP16; absent: by the defaults."""

    gradient_accumulation_steps: PositiveInt | None = None
    """Batches that make one step: they are joined to one, so that embedding tables take the same step too."""

    grad_clipping: GradClipping | None = None
    """Keeps large gradients of dense parameters in bounds; tables: gradient_clipping of the sparse optimizer."""

    global_embedding_constraints: Annotated[
        ParameterConstraints | None, Later("global_embedding_constraints", harmless=True)
    ] = None
    """What the sharding planner may choose from for every table."""

    cudnn_allow_tf32: bool = True
    """TF32 in convolutions, on a GPU."""

    cuda_matmul_allow_tf32: bool = False
    """TF32 in matrix products, on a GPU."""

    save_checkpoints_timestamp_interval: Annotated[NonNegativeInt, _TIMESTAMPS] = 0
    """Of the old schema."""

    save_checkpoints_timestamps: Annotated[list[int], _TIMESTAMPS] = []
    """Of the old schema."""

    save_checkpoints_timestamp_quorum: Annotated[Probability, _TIMESTAMPS] = 0.5
    """Of the old schema."""

    delta_embedding_dump_config: Annotated[
        DeltaEmbeddingDumpConfig | None, Ignored("changed embeddings are not dumped")
    ] = None
    """Of the old schema."""

    @model_validator(mode="after")
    def _ends(self) -> Self:
        if self.num_steps is None and self.num_epochs is None:
            self.num_epochs = 1
        return self

    def optimizers(self) -> Iterator[tuple[str, SparseOptimizer | DenseOptimizerOptions]]:
        """Every section that has an optimizer and its schedule, with where it stands."""
        if self.sparse_optimizer is not None:
            yield "train_config.sparse_optimizer", self.sparse_optimizer
        yield "train_config.dense_optimizer", self.dense_optimizer
        for index, part in enumerate(self.dense_optimizer.part_optimizers):
            yield f"train_config.dense_optimizer.part_optimizers[{index}]", part

    def problems(self, device_type: str) -> Iterator[Problem]:
        """What this kind of device ('cpu', 'cuda') cannot do, settings that wait for another one, and rates that
        contradict each other.
        """
        optimizers = list(self.optimizers())
        if self.sparse_optimizer is not None:
            yield from self.sparse_optimizer.problems(device_type)
        if self.grad_scaler is not None and self.mixed_precision != "FP16":
            message = "scales losses of FP16 alone; set mixed_precision: FP16, or leave it out"
            yield Problem("train_config.grad_scaler", message)
        if self.fine_tune_ckpt_param_map and not self.fine_tune_checkpoint:
            message = "names parameters of train_config.fine_tune_checkpoint, which is not set"
            yield Problem("train_config.fine_tune_ckpt_param_map", message)
        clipping = self.grad_clipping
        if (
            clipping is not None
            and clipping.model_fields_set
            and "clipping_type" not in clipping.model_fields_set
        ):
            message = "is none where it is not written, so that nothing is clipped; write norm or value"
            yield Problem("train_config.grad_clipping.clipping_type", message)
        if self.histogram_steps and not {"parameter", "gradient"} & set(self.tensorboard_summaries):
            message = "writes nothing without parameter or gradient in train_config.tensorboard_summaries"
            yield Problem("train_config.histogram_steps", message)
        chosen = None if self.sparse_optimizer is None else self.sparse_optimizer.chosen("optimizer")
        if chosen and "max_gradient" in chosen[1].model_fields_set and not chosen[1].gradient_clipping:
            path = f"train_config.sparse_optimizer.{chosen[0]}.max_gradient"
            yield Problem(path, "bounds nothing without gradient_clipping: true")
        for path, options in optimizers:
            schedule, optimizer = options.chosen("learning_rate"), options.chosen("optimizer")
            if schedule is not None and optimizer is not None:
                for key, message in rate_problems(schedule[1], optimizer[1].lr, f"{optimizer[0]}.lr"):
                    yield Problem(f"{path}.{schedule[0]}.{key}", message)

    def evaluates_on_the_way(self) -> bool:
        """Whether the turn of an evaluation may come; the run file does not say how many steps an epoch has."""
        steps = self.eval_steps or self.save_checkpoints_steps
        epochs = 0 if self.eval_steps else self.save_checkpoints_epochs or 0
        in_steps = steps > 0 and (self.num_steps is None or steps <= self.num_steps)
        in_epochs = epochs > 0 and (self.num_epochs is None or epochs <= self.num_epochs)
        return in_steps or in_epochs


class EvalConfig(Section):
    """How evaluation runs."""

    num_steps: PositiveInt | None = None
    """Evaluate on this many batches; absent: on all."""

    log_step_count_steps: PositiveInt = 10
    """Log every so many batches."""

    use_dense_ema: bool | None = None
    """Use the running mean of the parameters, in evaluation and prediction; absent: where there is one."""
