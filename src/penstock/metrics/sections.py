"""Options of the metrics. A section knows everything about its metric but how to count.

A new metric is a class that counts, a section here, and its name in `METRICS`.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Self

from pydantic import AfterValidator, Field, PositiveFloat, PositiveInt, model_validator

from penstock.config.registry import NamedPart, result_name
from penstock.config.section import Ignored, Probability, Refused, Section, words

PROBABILITY = ("probs1", "probs")
"""The probability of a positive: with two classes that of the second, with one the only one."""


class Best(StrEnum):
    """Which values of a metric are good ones."""

    max = "max"
    min = "min"
    one = "one"
    """The nearest to 1: neither more nor less is better."""


class MetricSection(Section):
    """One metric; the fields but `grouping_key` are the keyword arguments of its class."""

    path: ClassVar[str]
    """Its class, as "package.module:attribute"."""

    predictions: ClassVar[tuple[str, ...]] = ()
    """What it can read of a model's predictions: the first one that the model gives."""

    best: ClassVar[Best | None] = None
    """None: nobody knows, as of a custom metric."""

    def component(self, training: bool) -> tuple[str, dict[str, Any]]:
        """The class that counts in evaluation, or in windows of training, and its keyword arguments."""
        fields = type(self).model_fields
        return self.path, {name: getattr(self, name) for name in fields if name != "grouping_key"}

    def class_problems(self, num_class: int) -> Iterator[tuple[tuple[str, ...], str]]:
        """What makes no sense for a task of so many classes: keys below the section, and what is wrong."""
        yield from ()


class AUC(MetricSection):
    """Area under the ROC curve."""

    path = "penstock.metrics.auc:AUC"
    predictions = PROBABILITY
    best = Best.max

    thresholds: Annotated[int | None, Field(ge=2)] = None
    """Evenly spaced thresholds to count at; absent: a histogram of 100,000 bins."""

    exact: bool = False
    """Sort every prediction instead, on disk where memory is short; for evaluation."""

    def component(self, training: bool) -> tuple[str, dict[str, Any]]:
        if self.exact and not training:
            return "penstock.metrics.exact_auc:ExactAUC", {}
        path = "penstock.metrics.auc:DecayAUC" if training else self.path
        return path, {"thresholds": self.thresholds}

    @model_validator(mode="after")
    def _exact_needs_no_thresholds(self) -> Self:
        if self.exact and self.thresholds is not None:
            raise ValueError("exact takes no thresholds; leave out one of the two")
        return self


class MulticlassAUC(MetricSection):
    """Area under the ROC curve of each class against the others."""

    path = "penstock.metrics.auc:MulticlassAUC"
    predictions = ("probs",)
    best = Best.max

    thresholds: Annotated[int | None, Field(ge=2)] = None
    """Evenly spaced thresholds to count at; absent: a histogram of 100,000 bins."""

    average: Annotated[str, words("macro", "weighted")] = "macro"
    """macro: the plain mean over classes. weighted: by their rows."""

    def class_problems(self, num_class: int) -> Iterator[tuple[tuple[str, ...], str]]:
        if num_class < 2:
            yield (), "needs num_class 2 or more; it is 1: use auc"


class _TopCandidates(MetricSection):
    predictions = ("similarities",)
    best = Best.max

    top_k: PositiveInt = 5
    """How many candidates are looked at."""


class RecallAtK(_TopCandidates):
    """Share of rows whose positive is among the first k."""

    path = "penstock.metrics.row_means:RecallAtK"


class HitRateAtK(_TopCandidates):
    """Share of rows with any positive among the first k."""

    path = "penstock.metrics.row_means:HitRateAtK"


class NDCGAtK(_TopCandidates):
    """Discounted gain of the first k against the best possible order."""

    path = "penstock.metrics.row_means:NDCGAtK"


class _Error(MetricSection):
    predictions = ("y",)
    best = Best.min


class MeanAbsoluteError(_Error):
    """Mean of |prediction - label|."""

    path = "penstock.metrics.row_means:MeanAbsoluteError"


class MeanSquaredError(_Error):
    """Mean of (prediction - label) squared."""

    path = "penstock.metrics.row_means:MeanSquaredError"


class RootMeanSquaredError(_Error):
    """Root of the mean squared error."""

    path = "penstock.metrics.row_means:RootMeanSquaredError"


class LogLoss(MetricSection):
    """Mean binary cross entropy of the probabilities."""

    path = "penstock.metrics.row_means:LogLoss"
    predictions = PROBABILITY
    best = Best.min


class Calibration(MetricSection):
    """Sum of the predicted probabilities over the number of positives."""

    path = "penstock.metrics.row_means:Calibration"
    predictions = PROBABILITY
    best = Best.one


class Accuracy(MetricSection):
    """Share of rows that are predicted right."""

    path = "penstock.metrics.row_means:Accuracy"
    predictions = ("probs",)
    best = Best.max

    threshold: Probability = 0.5
    """Probability from which a row counts as positive, where there is one class."""

    top_k: PositiveInt = 1
    """A row is right when its class is among the k likeliest."""

    def class_problems(self, num_class: int) -> Iterator[tuple[tuple[str, ...], str]]:
        if self.top_k > 1 and num_class < 2:
            yield ("top_k",), f"is {self.top_k}, but with num_class 1 a threshold decides; leave it out"
        elif 1 < num_class <= self.top_k:
            message = f"is {self.top_k} of {num_class} classes, with which every row would be right; lower it"
            yield ("top_k",), message


class GroupWeight(StrEnum):
    """What a group counts by in a mean over groups."""

    none = "none"
    rows = "rows"
    positives = "positives"


class GroupedAUC(MetricSection):
    """Mean over groups of each group's exact area under the ROC curve."""

    path = "penstock.metrics.grouped_auc:GroupedAUC"
    predictions = PROBABILITY
    best = Best.max

    grouping_key: Annotated[str, Field(min_length=1)]
    """Column that tells which rows belong together; need not be a feature."""

    weight: GroupWeight = GroupWeight.none
    """What a group counts by: nothing, its rows, or its positives."""


_ALL_PAIRS = Ignored("all pairs are counted, which is faster than drawing some")


class XAUC(MetricSection):
    """Share of pairs of rows that are in the right order."""

    path = "penstock.metrics.xauc:XAUC"
    predictions = ("y",)
    best = Best.max

    sample_ratio: Annotated[float, Field(gt=0, le=1), _ALL_PAIRS] = 0.001
    """Share of all pairs that is drawn."""

    max_pairs: Annotated[PositiveInt | None, _ALL_PAIRS] = None
    """Number of pairs that is drawn; overrides sample_ratio."""

    in_batch: bool = False
    """Count the pairs inside each batch instead of those of the whole set."""

    exact: bool = False
    """Keep all rows, up to 33 million; absent: a sample of a million where there are more."""

    pair_weight: bool = True
    """With in_batch: a batch counts by its pairs; false gives the plain mean over batches."""

    @model_validator(mode="after")
    def _exact_is_of_the_whole_set(self) -> Self:
        if self.in_batch and self.exact:
            raise ValueError("in_batch and exact exclude each other; leave out one of the two")
        return self


class GroupedXAUC(MetricSection):
    """XAUC of each group, weighted by its rows."""

    path = "penstock.metrics.xauc:GroupedXAUC"
    predictions = ("y",)
    best = Best.max

    grouping_key: Annotated[str, Field(min_length=1)]
    """Column that tells which rows belong together; need not be a feature."""

    max_pairs_per_group: Annotated[PositiveInt, _ALL_PAIRS] = 100
    """Pairs that are drawn in each group; all where there are fewer."""


class NormalizedEntropy(MetricSection):
    """Cross entropy over the entropy of the base rate."""

    path = "penstock.metrics.row_means:NormalizedEntropy"
    predictions = PROBABILITY
    best = Best.min

    eta: PositiveFloat = 1e-12
    """Keeps logarithms finite."""


class CustomMetric(MetricSection, NamedPart):
    """A custom metric, with the methods of `penstock.metrics.metric.Metric`."""

    path = "penstock.metrics.wiring:custom_metric"

    reads: str = "probs"
    """The prediction that it is given: probs, probs1, logits, y or similarities."""

    def component(self, training: bool) -> tuple[str, dict[str, Any]]:
        return self.path, {"section": self}


METRICS: Mapping[str, type[MetricSection]] = {
    "auc": AUC,
    "multiclass_auc": MulticlassAUC,
    "recall_at_k": RecallAtK,
    "mean_absolute_error": MeanAbsoluteError,
    "mean_squared_error": MeanSquaredError,
    "accuracy": Accuracy,
    "grouped_auc": GroupedAUC,
    "xauc": XAUC,
    "grouped_xauc": GroupedXAUC,
    "normalized_entropy": NormalizedEntropy,
    "log_loss": LogLoss,
    "root_mean_squared_error": RootMeanSquaredError,
    "hit_rate_at_k": HitRateAtK,
    "ndcg_at_k": NDCGAtK,
    "calibration": Calibration,
    "custom_metric": CustomMetric,
}
"""The metrics of the run file, by the name of their section."""

WINDOWED = tuple(name for name, section in METRICS.items() if "grouping_key" not in section.model_fields)
"""The metrics that can be followed over windows of steps."""


def metric_names(configs: Sequence[Section]) -> list[str]:
    """What the metrics of one task are called in results, in their order: by their sections.

    Of a kind that is there several times each is called by the options in which they differ: auc and auc@200,
    recall@1 and recall@5 (recall_at_k). Only those that differ in nothing have one name.
    """
    chosen = [config.chosen("metric") for config in configs]
    names = [result_name(*each) if each else "" for each in chosen]
    for index, (name, each) in enumerate(zip(list(names), chosen, strict=True)):
        same = [other[1] for other in chosen if each and other and result_name(*other) == name]
        if each is None or len(same) < 2:
            continue
        values = {
            option: getattr(each[1], option)
            for option in type(each[1]).model_fields
            if any(getattr(other, option, None) != getattr(each[1], option) for other in same)
        }
        shown = [option if value is True else str(value) for option, value in values.items() if value]
        names[index] = "@".join([name.removesuffix("_at_k"), *shown])
    return names


def best_value(result: str) -> Best | None:
    """Which values of a result are good ones, by its name: `log_loss_buy` is the log_loss of a tower."""
    for name, section in METRICS.items():
        if result == name or result.startswith((f"{name}_", f"{name}@", f"{name.removesuffix('_at_k')}@")):
            return section.best
    return None


_OVER_GROUPS = tuple(name for name in METRICS if name not in WINDOWED)
_REFUSED = Refused(
    "it is for evaluation, since a group's rows are spread over many windows: write it in metrics; "
    f"train_metrics may have {', '.join(WINDOWED)}"
)


class MetricConfig(Section, group="metric", kinds=METRICS):
    """One metric of evaluation."""


def _fading(rate: float) -> float:
    if rate >= 1.0:
        raise ValueError(
            f"is {rate}; must be less than 1, such as 0.9: with 1 the value would stay that of the first window"
        )
    return rate


class TrainMetricConfig(
    Section,
    group="metric",
    kinds=METRICS,
    markers=dict.fromkeys(_OVER_GROUPS, _REFUSED),
    outside=_OVER_GROUPS,
):
    """One metric that is followed during training, over windows of steps that fade."""

    decay_rate: Annotated[float, Field(ge=0), AfterValidator(_fading)] = 0.9
    """How much of the value so far is kept when a window closes: from 0 to below 1."""

    decay_step: PositiveInt = 100
    """Steps in a window."""

    @model_validator(mode="after")
    def _windows_count_at_thresholds(self) -> Self:
        chosen = self.chosen("metric")
        if chosen is not None and isinstance(chosen[1], AUC) and chosen[1].exact:
            raise ValueError("auc.exact is for evaluation; in training auc counts at thresholds")
        return self
