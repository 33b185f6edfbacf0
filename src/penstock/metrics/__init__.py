"""Predictions -> numbers: accumulate, merge, decay, compute.

A metric is fed batch by batch (`update`), adds up what it needs in bounded memory, can be joined with another
that saw other rows (`merge`), and answers with a number (`compute`): NaN, with a reason, while it has seen
nothing usable. Metrics know arrays, not models; `wiring` says which prediction each one reads. NumPy inside,
NumPy or torch in.
"""

from penstock.metrics.metric import Metric, MetricState
from penstock.metrics.reducing import reduced
from penstock.metrics.windows import TrainMetricWrapper
from penstock.metrics.wiring import METRICS, BoundMetric, Wire, build_metrics, build_train_metrics

__all__ = [
    "METRICS",
    "BoundMetric",
    "Metric",
    "MetricState",
    "TrainMetricWrapper",
    "Wire",
    "build_metrics",
    "build_train_metrics",
    "reduced",
]
