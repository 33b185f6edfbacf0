"""Which evaluated checkpoint was the best."""

import pytest

from penstock.config.errors import CheckpointError
from penstock.training.best import BestMetric, best_step, require_best_step, smaller_is_better

BY_AUC = BestMetric("auc")


def evaluation(step, auc, saved=True):
    return {
        "step": step,
        "checkpoint": f"step-{step}" if saved else None,
        "metrics": {"auc": auc},
        "losses": {"binary_cross_entropy": 1 / step},
    }


def test_the_largest_value_wins():
    assert best_step([evaluation(10, 0.6), evaluation(20, 0.8), evaluation(30, 0.7)], BY_AUC) == 20


def test_the_smallest_wins_where_less_is_better():
    smaller = BestMetric("binary_cross_entropy", larger_is_better=False)

    assert best_step([evaluation(10, 0.6), evaluation(20, 0.8)], smaller) == 20


@pytest.mark.parametrize(
    ("metric", "is_so"),
    [
        ("auc", False),
        ("auc_buy", False),
        ("log_loss", True),
        ("log_loss_buy", True),
        ("root_mean_squared_error_watch", True),
        ("l2_loss_watch", True),
        ("log_lossy", False),
    ],
)
def test_the_name_says_which_way_is_better_with_a_tower_behind_it_too(metric, is_so):
    assert smaller_is_better(metric, losses=["l2_loss_watch"]) is is_so


def test_the_earliest_of_equals_wins():
    assert best_step([evaluation(10, 0.8), evaluation(20, 0.8)], BY_AUC) == 10


def test_what_was_not_saved_or_is_undefined_does_not_count():
    records = [evaluation(10, 0.6), evaluation(20, 0.9, saved=False), evaluation(30, None)]

    assert best_step(records, BY_AUC) == 10


def test_nothing_is_no_best():
    assert best_step([], BY_AUC) is None


def test_a_best_that_is_needed_says_why_there_is_none():
    with pytest.raises(
        CheckpointError, match=r"^run: training evaluated nothing, so that no checkpoint is the best"
    ):
        require_best_step([], BY_AUC, "run")

    with pytest.raises(
        CheckpointError, match=r"^run: export_config.best_exporter_metric is 'aux', .*mean 'auc'\? \(--set "
    ):
        require_best_step([evaluation(10, 0.6)], BestMetric("aux"), "run")
