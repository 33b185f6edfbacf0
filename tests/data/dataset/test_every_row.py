"""Whatever the numbers: features with their labels, and a loop that goes on as if never left."""

from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock
from tests.data.dataset.samples import labels


@dataclass(frozen=True)
class Case:
    """How a data set is read."""

    num_rows: int
    batch_rows: int
    buffer_rows: int
    num_shards: int
    num_epochs: int
    by_cost: bool
    is_prefetched: bool
    seed: int

    def shard(self, index: int) -> penstock.Dataset:
        ids = np.arange(self.num_rows)
        features = np.stack([ids, 10 * ids], axis=1).astype(np.float32)
        data = penstock.from_arrays({"x": features, "y": ids, "cost": ids % 5}).shard(index, self.num_shards)
        if self.buffer_rows:
            data = data.shuffle(rows=self.buffer_rows, seed=self.seed)
        if self.by_cost:
            data = data.batch(cost="cost", limit=self.batch_rows, max_rows=self.batch_rows)
        else:
            data = data.batch(self.batch_rows)
        data = data.epochs(self.num_epochs)
        return data.prefetch("1KiB") if self.is_prefetched else data


CASES = st.builds(
    Case,
    num_rows=st.integers(1, 60),
    batch_rows=st.integers(1, 70),
    buffer_rows=st.sampled_from([0, 2, 3, 10, 100]),
    num_shards=st.integers(1, 5),
    num_epochs=st.integers(1, 3),
    by_cost=st.booleans(),
    is_prefetched=st.booleans(),
    seed=st.integers(-(2**70), 2**70),
)


@settings(max_examples=40)
@given(CASES, st.data())
def test_a_loop_goes_on_as_if_it_had_never_been_left(case: Case, data: st.DataObject):
    index = data.draw(st.integers(0, case.num_shards - 1))
    expected = labels(case.shard(index))
    assert len(case.shard(index)) == len(expected)
    stop = data.draw(st.integers(0, len(expected)))
    before, after = case.shard(index), case.shard(index)
    with iter(before) as iterator:
        first = labels(next(iterator) for _ in range(stop))
        place = before.state_dict()

    after.load_state_dict(place)

    assert first + labels(after) == expected
