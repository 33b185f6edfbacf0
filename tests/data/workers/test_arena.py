"""Regions of the arena: no two overlap, and the lowest place is taken first."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.data.workers.arena import ALIGNMENT_BYTES, Region, Regions


def test_the_lowest_place_that_is_large_enough_is_taken():
    regions = Regions(1024)
    first, second, third = (regions.take(size) for size in (100, 64, 300))
    assert (first, second, third) == (Region(0, 128), Region(128, 64), Region(192, 320))

    regions.give_back(second)

    assert regions.take(65) == Region(512, 128)
    assert regions.take(10) == Region(128, 64)


def test_what_does_not_fit_is_not_given():
    regions = Regions(200)
    assert regions.take(201) is None
    taken = regions.take(100)
    assert regions.take(100) is None

    regions.give_back(taken)

    assert regions.take(192) == Region(0, 192)


@given(st.integers(0, 5000), st.lists(st.tuples(st.booleans(), st.integers(1, 2000)), max_size=40))
def test_regions_never_overlap_and_stay_inside(num_bytes, steps):
    regions = Regions(num_bytes)
    taken = []
    for gives_back, size in steps:
        if gives_back and taken:
            regions.give_back(taken.pop(size % len(taken)))
        elif (region := regions.take(size)) is not None:
            assert region.num_bytes >= size
            assert region.offset % ALIGNMENT_BYTES == 0
            taken.append(region)
        ordered = sorted(taken)
        ends = [region.offset + region.num_bytes for region in ordered]
        assert all(end <= later.offset for end, later in zip(ends, ordered[1:], strict=False))
        assert not ends or ends[-1] <= num_bytes
