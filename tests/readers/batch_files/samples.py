"""Small arrays and samples that look like those of a game."""

import numpy as np

HEADS = {"action_type": 4, "target": 3}


def game_arrays(num_samples: int = 5, seed: int = 0) -> dict[str, np.ndarray]:
    """Six features, two label heads and their masks."""
    generator = np.random.default_rng(seed)
    return {
        "strategic_features": generator.random((num_samples, 6), np.float32),
        **{
            f"labels_{head}": generator.integers(0, width, num_samples).astype(np.int16)
            for head, width in HEADS.items()
        },
        **{
            f"masks_{head}": generator.integers(0, 2, (num_samples, width)).astype(np.int8)
            for head, width in HEADS.items()
        },
    }


def assert_same(found, expected) -> None:
    """Names, their order, types, shapes and values."""
    assert list(found) == list(expected)
    for name, array in expected.items():
        assert found[name].dtype == array.dtype, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)
