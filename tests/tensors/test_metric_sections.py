"""Options of the metrics: what of training and of evaluation is not taken for the other."""

import pytest
from pydantic import ValidationError

from penstock.config.errors import ConfigError
from penstock.config.load import parse_section
from penstock.tensors.sections.metrics import WINDOWED, MetricConfig, TrainMetricConfig


@pytest.mark.parametrize("rate", [0.0, 0.5, 0.999])
def test_a_value_fades_by_a_rate_below_1(rate):
    assert TrainMetricConfig.model_validate({"auc": {}, "decay_rate": rate}).decay_rate == rate


@pytest.mark.parametrize("rate", [1.0, 1.5])
def test_a_rate_that_would_never_let_the_value_change_is_refused(rate):
    told = (
        f"is {rate}; must be less than 1, such as 0.9: with 1 the value would stay that of the first window"
    )
    with pytest.raises(ValidationError, match=told):
        TrainMetricConfig.model_validate({"auc": {}, "decay_rate": rate})


@pytest.mark.parametrize("name", ["grouped_auc", "grouped_xauc"])
def test_grouped_metrics_are_for_evaluation(name):
    with pytest.raises(ConfigError) as caught:
        parse_section(TrainMetricConfig, f"{name}: {{grouping_key: user_id}}", "yaml")

    assert str(caught.value) == (
        f"line 1, column 1: {name}: cannot be used: it is for evaluation, since a group's rows are spread over "
        f"many windows: write it in metrics; train_metrics may have {', '.join(WINDOWED)}"
    )


def test_what_cannot_be_windowed_is_known_here_by_name():
    assert set(MetricConfig.one_of["metric"]) - set(WINDOWED) == {"grouped_auc", "grouped_xauc"}
