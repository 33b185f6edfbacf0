"""Predictions -> numbers: accumulate, merge, compute.

A metric is fed batch by batch (`update`), adds up what it needs in bounded memory, can be joined with another
that saw other rows (`merge`), and answers with a number (`compute`): NaN, with a reason, while it has seen
nothing usable. Metrics know arrays, not models; `wiring` says which prediction each one reads. NumPy inside,
NumPy or torch in.
"""

from penstock.metrics.metric import Metric, MetricState
from penstock.metrics.wiring import METRICS, BoundMetric, Wire, build_metrics

__all__ = ["METRICS", "BoundMetric", "Metric", "MetricState", "Wire", "build_metrics"]
