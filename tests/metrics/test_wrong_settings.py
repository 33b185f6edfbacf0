"""Settings and values that a metric cannot use are told, whoever makes it."""

import pytest

from penstock.config.errors import DataError
from penstock.metrics.accuracy import Accuracy
from penstock.metrics.auc import AUC
from penstock.metrics.decay_auc import DecayAUC
from penstock.metrics.regression import MeanAbsoluteError
from penstock.metrics.xauc import XAUC

WRONG = {
    "no whole number of thresholds": (
        lambda: AUC(thresholds=10.5),
        "10.5 thresholds; the area needs a whole number",
    ),
    "a rate above 1": (lambda: DecayAUC(10).decay(2.0), "auc: decays by a rate from 0 to 1, not 2.0"),
    "a rate that is no number": (lambda: DecayAUC(10).decay(float("nan")), "from 0 to 1, not nan"),
    "a threshold above 1": (lambda: Accuracy(threshold=2.0), "accuracy: threshold 2.0, top_k 1: from 0 to 1"),
    "the first none": (lambda: Accuracy(top_k=0), "top_k 0: from 0 to 1, and at least 1"),
    "no pairs": (
        lambda: XAUC(sample_ratio=0.0),
        "xauc: sample_ratio 0.0, max_pairs None: above 0 and up to 1",
    ),
    "pairs below 1": (lambda: XAUC(max_pairs=0), "max_pairs 0: above 0 and up to 1, and at least 1"),
    "words": (
        lambda: DecayAUC(10).update(["high", "low"], [1, 0]),
        "auc: predictions and labels are arrays of numbers, not of <U4",
    ),
    "nothing": (
        lambda: MeanAbsoluteError().update([None], [1.0]),
        "mean_absolute_error: predictions and labels are arrays of numbers, not of object",
    ),
}


@pytest.mark.parametrize(("make", "told"), WRONG.values(), ids=WRONG.keys())
def test_it_is_told_in_one_line(make, told):
    with pytest.raises(DataError) as caught:
        make()

    assert told in str(caught.value)
    assert "\n" not in str(caught.value)
