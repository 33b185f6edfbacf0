"""What metrics hold: measured while they count and compute, it keeps within what they were given."""

import tracemalloc

import numpy as np
import pytest

from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import MIB
from penstock.metrics.auc import AUC, MulticlassAUC
from penstock.metrics.exact_auc import ExactAUC
from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.metric import MemoryNeeds
from penstock.metrics.row_means import Accuracy
from penstock.metrics.windows import TrainMetricWrapper
from penstock.metrics.wiring import BoundMetric, hold_within, memory_needs
from penstock.metrics.xauc import XAUC, GroupedXAUC

BATCH_ROWS = 8192
NUM_ROWS = 64 * BATCH_ROWS
KEEPING_ROWS = {
    "exact auc": ExactAUC,
    "exact xauc": lambda: XAUC(exact=True),
    "sampled xauc": XAUC,
    "grouped auc": GroupedAUC,
    "grouped xauc": GroupedXAUC,
}


def count(metric):
    """Many batches, of predictions that are all different."""
    generator = np.random.default_rng(0)
    for _ in range(0, NUM_ROWS, BATCH_ROWS):
        preds = generator.random(BATCH_ROWS)
        groups = [generator.integers(0, NUM_ROWS // 10, BATCH_ROWS)] if hasattr(metric, "_totals_of") else []
        metric.update(preds, (generator.random(BATCH_ROWS) < preds).astype(np.float32), *groups)


def peak_bytes(work):
    """The most that NumPy held at a time; the first call may load modules and is not measured."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
@pytest.mark.parametrize("plenty", ["min_bytes", "ample_bytes"])
@pytest.mark.parametrize("kind", KEEPING_ROWS)
def test_counting_and_computing_keep_within_what_was_given(kind, plenty):
    metric = KEEPING_ROWS[kind]()
    given = getattr(metric.memory_needs(NUM_ROWS), plenty)
    metric.hold_within(given, NUM_ROWS)

    def work():
        count(metric)
        metric.compute()

    assert peak_bytes(work) < given
    assert metric.held_bytes <= metric.computing_bytes <= given
    metric.reset()


@pytest.mark.parametrize("kind", KEEPING_ROWS)
def test_less_memory_gives_the_same_number_from_disk_or_from_fewer_rows(kind):
    roomy, tight = KEEPING_ROWS[kind](), KEEPING_ROWS[kind]()
    tight.hold_within(tight.memory_needs(NUM_ROWS).min_bytes, NUM_ROWS)
    for metric in (roomy, tight):
        count(metric)

    exactly = 1e-3 if kind == "sampled xauc" else 1e-12
    assert tight.compute() == pytest.approx(roomy.compute(), abs=4 * exactly)
    assert tight.held_bytes <= roomy.held_bytes
    tight.reset()


@pytest.mark.parametrize(
    ("metric", "num_rows", "min_bytes", "ample_bytes"),
    [
        (GroupedAUC(), 1000, 120_000, 120_000),
        (ExactAUC(), 1000, 96_000, 96_000),
        (XAUC(), 1000, 72_000, 72_000),
        (GroupedAUC(), 10_000_000, 24 * MIB, 240_000_000 + 16 * MIB),
        (ExactAUC(), 10_000_000, 16 * MIB, 256 * MIB),
        (XAUC(), 10_000_000, 72 * 65_536, 72 * MIB),
        (XAUC(exact=True), 10_000_000, 720_000_000, 720_000_000),
        (XAUC(in_batch=True), 10_000_000, 0, 0),
    ],
)
def test_rows_need_memory_up_to_a_limit(metric, num_rows, min_bytes, ample_bytes):
    assert metric.memory_needs(num_rows) == MemoryNeeds(min_bytes, ample_bytes)


def test_sums_need_the_same_for_any_number_of_rows():
    histogram = 3 * (2 * 100_000 * 8 + 8)

    assert AUC().memory_needs(10**9) == MemoryNeeds(histogram, histogram)
    assert MulticlassAUC(thresholds=10).memory_needs(5, num_classes=7).ample_bytes == 3 * 2 * 7 * 10 * 8
    assert Accuracy().memory_needs(10**9).ample_bytes < 100


def test_a_custom_metric_without_the_methods_for_it_is_not_in_the_plan():
    metrics = {
        name: BoundMetric(name, metric, "y", "y") for name, metric in (("own", object()), ("xauc", XAUC()))
    }

    assert memory_needs(metrics, 1000) == {"xauc": MemoryNeeds(72_000, 72_000)}
    hold_within(metrics, 64_000, num_rows=1000)


def test_a_window_needs_what_the_rows_of_its_steps_need():
    window = TrainMetricWrapper(XAUC(exact=True), decay_step=10)

    assert window.memory_needs(num_rows=100) == MemoryNeeds(72_000, 72_000)
    window.hold_within(7_200, num_rows=100)
    window.update(np.arange(10.0), np.arange(10.0))
    assert window.held_bytes == 10 * 24


def test_more_rows_than_an_exact_xauc_may_hold_say_what_to_do():
    metric = XAUC(exact=True)
    metric.hold_within(7_200, num_rows=100)

    with pytest.raises(BudgetExceeded) as caught:
        metric.update(np.arange(101.0), np.arange(101.0))

    assert str(caught.value) == (
        "xauc: exact holds at most 100 rows and there are more; leave exact out, and the pairs of a sample of the rows "
        "are counted, or raise memory.limit"
    )
