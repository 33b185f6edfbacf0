"""Groups whose rows lie on two real processes."""

import numpy as np
import pytest

from penstock.metrics.grouped_auc import GroupedAUC
from penstock.metrics.xauc import GroupedXAUC
from penstock.runtime.collectives import Collectives
from penstock.runtime.world import World
from tests.distributed.two_ranks import run_on_two_ranks


def rows():
    generator = np.random.default_rng(0)
    groups = np.array([f"user-{number}" for number in generator.integers(0, 40, 500)])
    preds = generator.integers(0, 30, 500).astype(np.float32)
    return preds, generator.random(500) < preds / 30, groups


def evaluate(world: World, collectives: Collectives, limit_bytes: int) -> list[float]:
    """The first rank has a tenth of the rows, as float32, the second the others, as float64."""
    part = slice(0, 50) if world.rank == 0 else slice(50, 500)
    preds, target, groups = (column[part] for column in rows())
    values = []
    for make in (GroupedAUC, GroupedXAUC):
        metric = make(limit_bytes=limit_bytes)
        metric.update(preds.astype(np.float64) if world.rank else preds, target, groups)
        values.append(metric.reduced(collectives).compute())
        metric.close()
    return values


@pytest.mark.slow
@pytest.mark.parametrize("limit_bytes", [1 << 20, 1000])
def test_two_processes_agree_with_one(limit_bytes):
    expected = []
    for metric in (GroupedAUC(), GroupedXAUC()):
        metric.update(*rows())
        expected.append(pytest.approx(metric.compute(), abs=1e-12))

    assert run_on_two_ranks(evaluate, limit_bytes) == [expected, expected]
