"""Tensors for any loop and any DataLoader: every row exactly once, whoever reads it."""

from contextlib import contextmanager
from traceback import clear_frames

import numpy as np
import pyarrow as pa
import pytest
from torch.utils.data import DataLoader

import penstock
from tests.data.dataset.samples import numbered


def labels(batches):
    return [batch["y"].tolist() for batch in batches]


def rows(batches):
    return sorted(label for batch in labels(batches) for label in batch)


@contextmanager
def refused_by_workers(error, match):
    """Expect an error of a DataLoader's workers, and let go of the loader at once.

    The frames of the error hold it in a cycle. The garbage collector would take the loader apart in some later test,
    its queues first: then the workers hear of the end only after 5 s each.
    """
    with pytest.raises(error, match=match) as told:
        yield
    clear_frames(told.tb)


def test_writing_into_a_tensor_does_not_reach_the_data():
    features = np.ones((4, 2), np.float32)

    for batch in penstock.from_arrays({"x": features}).batch(2).to_torch():
        batch["x"].zero_()

    assert features.sum() == 8


def test_what_has_no_tensor_stays_what_it_is():
    table = pa.table(
        {
            "name": ["ann", "bob"],
            "clicks": [[1, 2], [3]],
            "words": [["a"], []],
            "when": pa.array([5, 7], pa.timestamp("s")),
            "image": pa.array([[1, 2], [3, 4]], pa.list_(pa.uint8(), 2)),
        }
    )

    [batch] = penstock.from_arrays(table).batch(2).to_torch()

    assert batch["name"] == ["ann", "bob"]
    assert batch["clicks"].is_nested
    assert [row.tolist() for row in batch["clicks"].unbind()] == [[1, 2], [3]]
    assert batch["words"] == [["a"], []]
    assert batch["when"].tolist() == [5, 7]
    assert batch["image"].tolist() == [[1, 2], [3, 4]]


def test_take_is_of_all_workers_together():
    loader = DataLoader(numbered(40).batch(2).take(5).to_torch(), batch_size=None, num_workers=2)

    assert len(labels(loader)) == 5


@pytest.mark.parametrize("persistent_workers", [False, True])
def test_an_epoch_can_be_chosen_for_workers(persistent_workers):
    dataset = numbered(40).shuffle("1MiB").batch(40).to_torch()
    loader = DataLoader(dataset, batch_size=None, num_workers=1, persistent_workers=persistent_workers)

    orders = []
    for epoch in (0, 1, 0):
        dataset.set_epoch(epoch)
        orders.append(labels(loader))

    assert orders[0] == orders[2] != orders[1]


def test_workers_share_the_memory():
    dataset = numbered(1000).shuffle("8KiB").batch(10).memory("2MiB").to_torch()

    assert rows(dataset) == list(range(1000))
    with refused_by_workers(penstock.BudgetExceeded, match=r"raise the limit of \.memory"):
        labels(DataLoader(dataset, batch_size=None, num_workers=2))


def test_a_place_that_workers_cannot_have_is_refused():
    dataset = numbered(20).batch(4).to_torch()
    dataset.load_state_dict(dataset.state_dict())

    with refused_by_workers(
        penstock.CheckpointError, match="a position was loaded before the workers of the DataLoader began"
    ):
        labels(DataLoader(dataset, batch_size=None, num_workers=1))


def test_a_data_loader_can_make_the_batches_itself():
    loader = DataLoader(numbered(10).shuffle("1MiB").to_torch(), batch_size=4)

    assert [len(batch) for batch in labels(loader)] == [4, 4, 2]
    assert rows(loader) == list(range(10))
