"""Logistic regression in plain NumPy, on arrays on disk that never have to fit into memory.

The loop is left in the middle of an epoch and gone on with, as after a crash: the weights are the same to the last bit.

    python examples/library/numpy_loop.py
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import penstock

TRUE_WEIGHTS = np.array([2.0, -1.0, 0.5, 0.0])


def write_arrays(folder: Path, num_rows: int = 20_000) -> None:
    """Features and labels as two arrays: x.npy and y.npy."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(num_rows, len(TRUE_WEIGHTS)))
    y = generator.random(num_rows) < 1 / (1 + np.exp(-x @ TRUE_WEIGHTS))
    np.save(folder / "x.npy", x.astype(np.float32))
    np.save(folder / "y.npy", y.astype(np.float32))


def open_batches(folder: Path) -> penstock.Dataset:
    """Three epochs of shuffled batches, with noise on the features."""

    def add_noise(batch: dict[str, np.ndarray], generator: np.random.Generator) -> dict[str, np.ndarray]:
        return {**batch, "x": batch["x"] + generator.normal(scale=0.01, size=batch["x"].shape)}

    batches = penstock.read_store(folder).shuffle("64KiB", seed=7).batch(256)
    return batches.map(add_noise, seed=1).epochs(3)


def step(weights: np.ndarray, batch: dict[str, np.ndarray]) -> np.ndarray:
    """One step of gradient descent."""
    error = 1 / (1 + np.exp(-batch["x"] @ weights)) - batch["y"]
    return weights - 0.5 * batch["x"].T @ error / len(error)


def main() -> None:
    """Train without a break, and with one."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_arrays(folder)

        batches, weights = open_batches(folder), np.zeros(len(TRUE_WEIGHTS))
        print(batches.schema.names, len(batches), "batches")
        for batch in batches:
            weights = step(weights, batch)
        print("without a break:", weights.round(3))

        batches, resumed = open_batches(folder), np.zeros(len(TRUE_WEIGHTS))
        for done, batch in enumerate(batches, start=1):
            resumed = step(resumed, batch)
            if done == 100:
                saved = json.dumps({"position": batches.state_dict(), "weights": resumed.tolist()})
                break

        state = json.loads(saved)
        batches, resumed = open_batches(folder), np.array(state["weights"])
        batches.load_state_dict(state["position"])
        for batch in batches:
            resumed = step(resumed, batch)
        print(
            "with a break:   ", resumed.round(3), "equal" if np.array_equal(weights, resumed) else "different"
        )


if __name__ == "__main__":
    main()
