"""Metrics that are not Penstock's own."""

from typing import TYPE_CHECKING, cast

from penstock.config.errors import ConfigError
from penstock.config.registry import make_part, require_call
from penstock.metrics.metric import Metric

if TYPE_CHECKING:
    from penstock.tensors.sections.metrics import CustomMetric as CustomMetricSection

NEEDED = (
    "update",
    "merge",
    "compute",
    "reset",
    "state_dict",
    "load_state_dict",
    "undefined_because",
    "num_left_out",
)
"""What the `Metric` protocol asks for."""


class CustomMetric:
    """Makes the metric that stands at the place of its section."""

    @staticmethod
    def from_section(section: "CustomMetricSection") -> Metric:
        """The user's metric, if it has everything that a metric needs."""
        metric = make_part("metric", section)
        missing = [name for name in NEEDED if not hasattr(metric, name)]
        if missing:
            raise ConfigError(
                f"custom_metric '{section.place}': has no {', '.join(missing)}; "
                "penstock.metrics.sums.RowMean has all but the number of a row"
            )
        require_call("metric", section, metric.update, "(preds, target)")
        _require_number(section, metric)
        return cast(Metric, metric)


def _require_number(section: "CustomMetricSection", metric: Metric) -> None:
    """A metric answers with a number, be it NaN; one that cannot answer yet is asked again when it has seen rows."""
    try:
        value: object = metric.compute()
    except Exception:
        return
    if not hasattr(value, "__float__"):
        raise ConfigError(f"custom_metric '{section.place}': compute gives {value!r}, no number")
