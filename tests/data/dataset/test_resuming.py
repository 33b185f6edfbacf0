"""Going on where a loop was left: exactly, with everything on the way, and on another number of shards."""

import pytest

import penstock
from tests.data.dataset.samples import cases, labels, numbered


def saved(chained):
    dataset = chained(numbered(40))
    next(iter(dataset))
    return dataset.state_dict()


ORDERS = """
data.shuffle("1MiB", seed=1).batch(4) -> data.batch(4)
    with .shuffle in 40 rows and seed 1, and this Dataset is without .shuffle; the order of rows
data.take(20).batch(4) -> data.batch(4)
    the position was saved with .take(20), and this Dataset is with all rows
data.shard(0, 2).batch(4) -> data.batch(4)
    the position is of shard 0 of 2, this is shard 0 of 1; load the positions of all shards together
"""


@pytest.mark.parametrize(("chains", "message"), cases(ORDERS))
def test_a_place_of_another_order_is_refused(chains, message):
    before, after = (eval(chain, {"data": numbered(40)}) for chain in chains.split(" -> "))
    next(iter(before))

    with pytest.raises(penstock.CheckpointError) as told:
        after.load_state_dict(before.state_dict())
    assert message in str(told.value)


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        (None, "it is None"),
        ("place.json", "it is an object of type str"),
        ({"epoch": 3}, "it has no 'first_epoch'"),
        ({**numbered(3).state_dict(), "rows": None}, "its 'rows' is None"),
        ({**numbered(3).state_dict(), "rows": {"epoch": 0}}, "its 'rows' has no 'row'"),
    ],
    ids=str,
)
def test_what_is_no_place_is_told_with_what_it_is(state, problem):
    message = f"this is no position of a Dataset: {problem}; load what state_dict() of one gave"
    for reading in (numbered(3), iter(numbered(3))):
        with pytest.raises(penstock.CheckpointError) as told:
            reading.load_state_dict(state)
        assert str(told.value) == message


def test_a_part_that_was_taken_cannot_be_cut_anew():
    states = [saved(lambda data, index=index: data.shard(index, 2).batch(2).take(5)) for index in range(2)]

    with pytest.raises(
        penstock.CheckpointError, match=r"^the positions are of 2 shards, and this is one of 1: what .take"
    ):
        numbered(40).batch(2).take(5).load_state_dict(states)


def test_the_iterator_has_the_place_too():
    dataset = numbered(12).batch(4)
    iterator = iter(dataset)
    next(iterator)
    place = iterator.state_dict()
    next(iterator)

    iterator.load_state_dict(place)

    assert labels(iterator) == [[4, 5, 6, 7], [8, 9, 10, 11]]
