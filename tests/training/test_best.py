"""Which evaluation is the best, and when evaluations get no better."""

import pytest

from penstock.config.errors import CheckpointError
from penstock.training.best import BestMetric, EarlyStop, best_step, require_best_step, smaller_is_better

BY_AUC = BestMetric("auc")


def evaluation(step, auc, saved=True):
    return {
        "step": step,
        "checkpoint": f"step-{step}" if saved else None,
        "metrics": {"auc": auc},
        "losses": {"binary_cross_entropy": 1 / step},
    }


@pytest.mark.parametrize(
    ("metric", "records", "best"),
    [
        (BY_AUC, [(10, 0.6), (20, 0.8), (30, 0.7)], 20),
        (BestMetric("binary_cross_entropy"), [(10, 0.8), (20, 0.6)], 20),
        (BestMetric("auc", larger_is_better=False), [(10, 0.6), (20, 0.8)], 10),
        (BY_AUC, [(10, 0.8), (20, 0.8)], 10),
        (BY_AUC, [(10, 0.6), (20, 0.9, False), (30, None)], 10),
        (BY_AUC, [(10, None)], None),
    ],
    ids=["largest", "smallest loss", "smallest", "earliest of equals", "saved and defined", "none"],
)
def test_the_best_step(metric, records, best):
    assert best_step([evaluation(*record) for record in records], metric) == best


@pytest.mark.parametrize(
    ("metric", "is_so"),
    [
        ("auc_buy", False),
        ("log_loss_buy", True),
        ("l2_loss_watch", True),
        ("log_lossy", False),
    ],
)
def test_the_name_says_which_way_is_better_with_a_tower_behind_it_too(metric, is_so):
    assert smaller_is_better(metric, losses=["l2_loss_watch"]) is is_so


def test_a_best_that_is_needed_says_why_there_is_none():
    with pytest.raises(
        CheckpointError, match=r"^run: training evaluated nothing, so that no checkpoint is the best"
    ):
        require_best_step([], BY_AUC, "run")

    with pytest.raises(
        CheckpointError, match=r"^run: export_config.best_exporter_metric is 'aux', .*mean 'auc'\? \(--set "
    ):
        require_best_step([evaluation(10, 0.6)], BestMetric("aux"), "run")


NAN = float("nan")


def watched(values, **options):
    """What was the best after each evaluation, until it was time to stop."""
    stop, found = EarlyStop("auc", **options), []
    for step, value in enumerate(values, start=1):
        stop.update(step, value)
        found.append(stop.best_step)
        if stop.due:
            break
    return found


@pytest.mark.parametrize(
    ("values", "options", "best_steps"),
    [
        ([0.6, 0.7, 0.65, 0.69, 0.8], {"patience": 3}, [1, 2, 2, 2, 5]),
        ([0.6, 0.5, 0.55], {"patience": 1, "larger_is_better": False}, [1, 2, 2]),
        ([0.6, 0.605, 0.609], {"patience": 2, "min_delta": 0.01}, [1, 1, 1]),
        ([0.6, 0.6], {"patience": 1}, [1, 1]),
        ([NAN, NAN, 0.5], {"patience": 2}, [None, None]),
    ],
    ids=["waits", "less is better", "a small gain", "equals", "undefined"],
)
def test_early_stopping_waits_for_a_better_evaluation(values, options, best_steps):
    assert watched(values, **options) == best_steps


def test_the_reason_for_stopping():
    assert EarlyStop("auc", 1, waited=1).reason() == "auc got no better in 1 evaluation (never defined)"
    stop = EarlyStop("auc", 2, best=0.7, best_step=10, waited=2)
    assert stop.reason() == "auc got no better in 2 evaluations (best 0.7 at step 10)"


def test_another_metric_is_watched_from_the_start():
    stop = EarlyStop("log_loss", patience=2)

    stop.load_state_dict(EarlyStop("auc", patience=2, best=0.7, best_step=1, waited=2).state_dict())

    assert (stop.best, stop.waited) == (None, 0)
