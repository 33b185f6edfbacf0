"""Predictions -> numbers: accumulate, merge, decay, compute.

A metric is fed batch by batch (`update`), adds up what it needs in bounded memory, can be joined with another
that saw other rows (`merge`), and answers with a number (`compute`): NaN, with a reason, while it has seen
nothing usable. Metrics know arrays, not models; its section says which prediction each one reads. NumPy inside,
NumPy or torch in.
"""

from penstock.metrics.metric import Metric, MetricState, reduced
from penstock.metrics.sections import METRICS
from penstock.metrics.windows import TrainMetricWrapper
from penstock.metrics.wiring import BoundMetric, build_metrics

__all__ = [
    "METRICS",
    "BoundMetric",
    "Metric",
    "MetricState",
    "TrainMetricWrapper",
    "build_metrics",
    "reduced",
]
