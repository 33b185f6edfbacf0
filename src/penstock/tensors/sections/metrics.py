"""Options of the metrics.

They stand below models and metrics because both need them: a model's task says what is measured on it, and a
metric is built from these options. `penstock.metrics.sections` gives them under the name of their owner.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, model_validator

from penstock.config.registry import NamedPart
from penstock.config.section import Probability, Refused, Section, words


class AUC(Section):
    """Area under the ROC curve."""

    thresholds: Annotated[int | None, Field(ge=2)] = None
    """Evenly spaced thresholds to count at; absent: a histogram of 100,000 bins."""

    exact: bool = False
    """Sort every prediction instead, on disk where memory is short; for evaluation."""

    @model_validator(mode="after")
    def _exact_needs_no_thresholds(self) -> Self:
        if self.exact and self.thresholds is not None:
            raise ValueError("exact takes no thresholds; leave out one of the two")
        return self


class MulticlassAUC(Section):
    """Area under the ROC curve of each class against the others."""

    thresholds: Annotated[int | None, Field(ge=2)] = None
    """Evenly spaced thresholds to count at; absent: a histogram of 100,000 bins."""

    average: Annotated[str, words("macro", "weighted")] = "macro"
    """macro: the plain mean over classes. weighted: by their rows."""


class RecallAtK(Section):
    """Share of rows whose positive is among the first k."""

    top_k: PositiveInt = 5
    """How many candidates are looked at."""


class HitRateAtK(Section):
    """Share of rows with any positive among the first k."""

    top_k: PositiveInt = 5
    """How many candidates are looked at."""


class NDCGAtK(Section):
    """Discounted gain of the first k against the best possible order."""

    top_k: PositiveInt = 5
    """How many candidates are looked at."""


class MeanAbsoluteError(Section):
    """Mean of |prediction - label|."""


class MeanSquaredError(Section):
    """Mean of (prediction - label) squared."""


class RootMeanSquaredError(Section):
    """Root of the mean squared error."""


class LogLoss(Section):
    """Mean binary cross entropy of the probabilities."""


class Calibration(Section):
    """Sum of the predicted probabilities over the number of positives."""


class Accuracy(Section):
    """Share of rows that are predicted right."""

    threshold: Probability = 0.5
    """Probability from which a row counts as positive, where there is one class."""

    top_k: PositiveInt = 1
    """A row is right when its class is among the k likeliest."""


class GroupWeight(StrEnum):
    """What a group counts by in a mean over groups."""

    none = "none"
    rows = "rows"
    positives = "positives"


class GroupedAUC(Section):
    """Mean over groups of each group's exact area under the ROC curve."""

    grouping_key: Annotated[str, Field(min_length=1)]
    """Column that tells which rows belong together; need not be a feature."""

    weight: GroupWeight = GroupWeight.none
    """What a group counts by: nothing, its rows, or its positives."""


class XAUC(Section):
    """Share of pairs of rows that are in the right order."""

    sample_ratio: Annotated[float, Field(gt=0, le=1)] = 0.001
    """Share of all pairs that is drawn."""

    max_pairs: PositiveInt | None = None
    """Number of pairs that is drawn; overrides sample_ratio."""

    in_batch: bool = False
    """Take all pairs inside each batch instead of drawing from the whole set."""

    exact: bool = False
    """Count all pairs of the whole set."""

    pair_weight: bool = True
    """With in_batch: a batch counts by its pairs; false gives the plain mean over batches."""

    @model_validator(mode="after")
    def _exact_is_of_the_whole_set(self) -> Self:
        if self.in_batch and self.exact:
            raise ValueError("in_batch and exact exclude each other; leave out one of the two")
        return self


class GroupedXAUC(Section):
    """XAUC of each group, weighted by its rows."""

    grouping_key: Annotated[str, Field(min_length=1)]
    """Column that tells which rows belong together; need not be a feature."""

    max_pairs_per_group: PositiveInt = 100
    """Pairs that are drawn in each group; all where there are fewer."""


class NormalizedEntropy(Section):
    """Cross entropy over the entropy of the base rate."""

    eta: PositiveFloat = 1e-12
    """Keeps logarithms finite."""


class CustomMetric(NamedPart):
    """A metric of one's own, with the methods of `penstock.metrics.metric.Metric`."""

    reads: str = "probs"
    """The prediction that it is given: probs, probs1, logits, y or similarities."""


class MetricConfig(Section):
    """One metric of evaluation."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "metric": (
            "auc",
            "multiclass_auc",
            "recall_at_k",
            "mean_absolute_error",
            "mean_squared_error",
            "accuracy",
            "grouped_auc",
            "xauc",
            "grouped_xauc",
            "normalized_entropy",
            "log_loss",
            "root_mean_squared_error",
            "hit_rate_at_k",
            "ndcg_at_k",
            "calibration",
            "custom_metric",
        )
    }
    required_one_of: ClassVar[tuple[str, ...]] = ("metric",)

    custom_metric: CustomMetric | None = None
    auc: AUC | None = None
    log_loss: LogLoss | None = None
    multiclass_auc: MulticlassAUC | None = None
    recall_at_k: RecallAtK | None = None
    mean_absolute_error: MeanAbsoluteError | None = None
    mean_squared_error: MeanSquaredError | None = None
    accuracy: Accuracy | None = None
    grouped_auc: GroupedAUC | None = None
    xauc: XAUC | None = None
    grouped_xauc: GroupedXAUC | None = None
    normalized_entropy: NormalizedEntropy | None = None
    root_mean_squared_error: RootMeanSquaredError | None = None
    hit_rate_at_k: HitRateAtK | None = None
    ndcg_at_k: NDCGAtK | None = None
    calibration: Calibration | None = None


WINDOWED = (
    "auc",
    "recall_at_k",
    "mean_absolute_error",
    "mean_squared_error",
    "accuracy",
    "xauc",
    "log_loss",
    "root_mean_squared_error",
    "normalized_entropy",
    "calibration",
    "multiclass_auc",
    "hit_rate_at_k",
    "ndcg_at_k",
    "custom_metric",
)
"""The metrics that can be followed over windows of steps."""

_OF_EVALUATION = Refused(
    "it is for evaluation, since a group's rows are spread over many windows: write it in metrics; "
    f"train_metrics may have {', '.join(WINDOWED)}"
)


def _fading(rate: float) -> float:
    if rate >= 1.0:
        raise ValueError(
            f"is {rate}; must be less than 1, such as 0.9: with 1 the value would stay that of the first window"
        )
    return rate


class TrainMetricConfig(Section):
    """One metric that is followed during training, over windows of steps that fade."""

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {"metric": WINDOWED}
    required_one_of: ClassVar[tuple[str, ...]] = ("metric",)

    decay_rate: Annotated[float, Field(ge=0), AfterValidator(_fading)] = 0.9
    """How much of the value so far is kept when a window closes: from 0 to below 1."""

    decay_step: PositiveInt = 100
    """Steps in a window."""

    custom_metric: CustomMetric | None = None
    auc: AUC | None = None
    recall_at_k: RecallAtK | None = None
    mean_absolute_error: MeanAbsoluteError | None = None
    mean_squared_error: MeanSquaredError | None = None
    accuracy: Accuracy | None = None
    xauc: XAUC | None = None
    log_loss: LogLoss | None = None
    root_mean_squared_error: RootMeanSquaredError | None = None
    normalized_entropy: NormalizedEntropy | None = None
    calibration: Calibration | None = None
    multiclass_auc: MulticlassAUC | None = None
    hit_rate_at_k: HitRateAtK | None = None
    ndcg_at_k: NDCGAtK | None = None
    grouped_auc: Annotated[GroupedAUC | None, _OF_EVALUATION] = None
    grouped_xauc: Annotated[GroupedXAUC | None, _OF_EVALUATION] = None

    @model_validator(mode="after")
    def _windows_count_at_thresholds(self) -> Self:
        if self.auc is not None and self.auc.exact:
            raise ValueError("auc.exact is for evaluation; in training auc counts at thresholds")
        return self
