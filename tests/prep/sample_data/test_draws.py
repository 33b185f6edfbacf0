import numpy as np

from penstock.prep.sample_data.blocks import generator, hashed_effects, zipf_ids


def test_a_stream_is_known_by_seed_name_and_index():
    def first(*key) -> float:
        return generator(*key).random()

    assert first(0, "rows", 1) == first(0, "rows", 1)
    assert len({first(0, "rows", 1), first(1, "rows", 1), first(0, "users", 1), first(0, "rows", 2)}) == 4


def test_zipf_ids_follow_the_documented_probabilities():
    ids = zipf_ids(generator(0, "ids"), 100, size=200_000)

    shares = np.bincount(ids, minlength=100) / len(ids)
    expected = np.log((np.arange(100) + 2) / (np.arange(100) + 1)) / np.log(101)
    assert (ids.min(), ids.max()) == (0, 99)
    np.testing.assert_allclose(shares, expected, atol=0.003)


def test_zipf_ids_take_a_cardinality_per_row():
    cardinality = np.repeat([1, 3], 1000)

    ids = zipf_ids(generator(0, "ids"), cardinality, size=2000)

    assert set(ids[:1000]) == {0}
    assert set(ids[1000:]) == {0, 1, 2}


def test_hashed_effects_are_a_function_of_id_and_key_with_unit_variance():
    effects = hashed_effects(np.arange(100_000), key=7)

    assert effects[41] == hashed_effects(np.array([41]), key=7)[0]
    assert effects[41] != hashed_effects(np.array([41]), key=8)[0]
    assert abs(effects.mean()) < 0.01
    assert abs(effects.std() - 1.0) < 0.01
