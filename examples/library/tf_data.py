"""A Keras model on a tf.data.Dataset whose rows are read, shuffled and cut in bounded memory.

It needs TensorFlow: pip install 'penstock[tf]'.

    python examples/library/tf_data.py
"""

import tempfile
from pathlib import Path

import numpy as np
import tensorflow as tf

import penstock


def write_circles(folder: Path, num_rows: int = 8_192) -> None:
    """Points of a square, and whether each is inside the circle, as TFRecord files."""
    points = np.random.default_rng(0).uniform(-1, 1, size=(num_rows, 2)).astype(np.float32)
    inside = (points**2).sum(axis=1) < 0.6
    penstock.write_tfrecord(folder / "circles.tfrecord", {"point": points, "inside": inside}, files=2)


def main() -> None:
    """Train a few epochs."""
    tf.keras.utils.set_random_seed(0)
    with tempfile.TemporaryDirectory() as name:
        write_circles(Path(name))
        schema = {"point": ("float32", 2), "inside": "int64"}
        circles = penstock.read_tfrecord(name, schema=schema).shuffle("64KiB", seed=7).batch(64)

        batches = circles.to_tf()
        for column, spec in batches.element_spec.items():
            print(f"{column}: {spec.dtype.name} {spec.shape}")

        layers = [
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(1, activation="sigmoid"),
        ]
        model = tf.keras.Sequential(layers)
        model.compile(
            optimizer=tf.keras.optimizers.Adam(0.02), loss="binary_crossentropy", metrics=["accuracy"]
        )
        pairs = batches.map(lambda batch: (batch["point"], batch["inside"]))
        history = model.fit(pairs, epochs=4, verbose=0).history
        print("accuracy by epoch:", *(f"{value:.2f}" for value in history["accuracy"]))


if __name__ == "__main__":
    main()
