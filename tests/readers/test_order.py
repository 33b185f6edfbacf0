"""Orders that follow from their arguments alone."""

from penstock.readers.sequence import block_order, derive_generator


def test_equal_arguments_give_equal_numbers() -> None:
    first, second = (derive_generator("rows", 7, 0, 3).integers(0, 1000, 5).tolist() for _ in range(2))

    assert first == second


def test_purpose_seed_and_place_each_change_the_numbers() -> None:
    generators = [
        derive_generator("rows", 7, 0, 3),
        derive_generator("blocks", 7, 0, 3),
        derive_generator("rows", -7, 0, 3),
        derive_generator("rows", 7, 3, 0),
    ]

    assert len({generator.integers(0, 1 << 60) for generator in generators}) == 4


def test_without_a_seed_blocks_keep_their_order() -> None:
    assert block_order(4, None, epoch=3).tolist() == [0, 1, 2, 3]
    assert sorted(block_order(4, 7, epoch=3).tolist()) == [0, 1, 2, 3]
