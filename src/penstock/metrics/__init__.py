"""Predictions -> numbers: accumulate, merge, decay, compute.

A metric is fed batch by batch (`update`), adds up what it needs in bounded memory, can be joined with another
that saw other rows (`merge`), and answers with a number (`compute`): NaN, with a reason, while it has seen
nothing usable. Metrics know arrays, not models; its section says which prediction each one reads. NumPy inside,
NumPy or torch in. Each name is imported when it is first asked for.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.metrics.auc import AUC, DecayAUC, MulticlassAUC
    from penstock.metrics.exact_auc import ExactAUC
    from penstock.metrics.grouped_auc import GroupedAUC
    from penstock.metrics.metric import Metric, MetricState, reduced
    from penstock.metrics.row_means import (
        Accuracy,
        Calibration,
        HitRateAtK,
        LogLoss,
        MeanAbsoluteError,
        MeanSquaredError,
        NDCGAtK,
        NormalizedEntropy,
        RecallAtK,
        RootMeanSquaredError,
    )
    from penstock.metrics.sections import METRICS
    from penstock.metrics.windows import TrainMetricWrapper
    from penstock.metrics.wiring import BoundMetric, build_metrics
    from penstock.metrics.xauc import XAUC, GroupedXAUC

__all__ = [
    "AUC",
    "METRICS",
    "XAUC",
    "Accuracy",
    "BoundMetric",
    "Calibration",
    "DecayAUC",
    "ExactAUC",
    "GroupedAUC",
    "GroupedXAUC",
    "HitRateAtK",
    "LogLoss",
    "MeanAbsoluteError",
    "MeanSquaredError",
    "Metric",
    "MetricState",
    "MulticlassAUC",
    "NDCGAtK",
    "NormalizedEntropy",
    "RecallAtK",
    "RootMeanSquaredError",
    "TrainMetricWrapper",
    "build_metrics",
    "reduced",
]

_MODULES = {
    "auc": ("AUC", "DecayAUC", "MulticlassAUC"),
    "exact_auc": ("ExactAUC",),
    "grouped_auc": ("GroupedAUC",),
    "metric": ("Metric", "MetricState", "reduced"),
    "sections": ("METRICS",),
    "windows": ("TrainMetricWrapper",),
    "wiring": ("BoundMetric", "build_metrics"),
    "xauc": ("XAUC", "GroupedXAUC"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'penstock.metrics' has no attribute '{name}'")
    module = next((module for module, names in _MODULES.items() if name in names), "row_means")
    return getattr(import_module(f"penstock.metrics.{module}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
