from penstock.checkpoint.store import stale


def test_the_newest_stay():
    assert stale([30, 10, 20], keep=2) == [10]


def test_protected_steps_stay_besides_the_newest():
    assert stale([10, 20, 30, 40], keep=1, protected=[20]) == [10, 30]


def test_keep_zero_keeps_everything():
    assert stale([10, 20, 30], keep=0) == []


def test_fewer_than_keep_are_all_kept():
    assert stale([10], keep=5) == []
