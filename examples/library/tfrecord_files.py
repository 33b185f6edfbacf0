"""TFRecord files without TensorFlow: written from a table, read with and without a schema, cut by cost.

python examples/library/tfrecord_files.py
"""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

import penstock


def sentences(num_rows: int = 1_000) -> pa.Table:
    """Words as numbers: each row has as many as it needs."""
    generator = np.random.default_rng(0)
    lengths = generator.integers(1, 40, num_rows)
    return pa.table(
        {
            "words": [generator.integers(0, 50_000, length) for length in lengths],
            "num_words": lengths,
            "language": generator.choice(["de", "en", "fr"], num_rows),
        }
    )


def main() -> None:
    """Write, look, read."""
    with tempfile.TemporaryDirectory() as name:
        paths = penstock.write_tfrecord(Path(name) / "train.tfrecord", sentences(), files=4)
        print("wrote", *(Path(path).name for path in paths), sep="\n  ")

        found = penstock.read_tfrecord(paths)
        print(
            f"\n{found.num_rows} records with",
            *(f"{field.name}: {field.type}" for field in found.schema),
            sep="\n  ",
        )

        schema = {"words": ("int64", "any"), "num_words": "int64"}
        batches = penstock.read_tfrecord(paths, schema=schema).shuffle("64KiB", seed=7)
        batches = batches.batch(cost="num_words", limit=512)
        print(f"\n{len(batches)} batches of at most 512 words:")
        for batch in batches.take(3):
            words = batch["words"]
            print(f"  {len(words)} sentences, {words.lengths.sum()} words, padded to {words.padded().shape}")


if __name__ == "__main__":
    main()
