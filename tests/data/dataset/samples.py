"""Small data sets whose rows can be told apart, and batches as plain lists."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import penstock


def numbered(num_rows: int) -> penstock.Dataset:
    """Features and labels that belong together: row i has the label i and the features (i, 10 * i)."""
    labels = np.arange(num_rows)
    features = np.stack([labels, 10 * labels], axis=1).astype(np.float32)
    return penstock.from_arrays({"x": features, "y": labels})


def numbered_file(folder: Path, num_rows: int, row_group_rows: int = 10) -> Path:
    """The same rows in a Parquet file of several row groups."""
    path = folder / "numbered.parquet"
    labels = np.arange(num_rows)
    features = pa.FixedSizeListArray.from_arrays(np.stack([labels, 10 * labels], axis=1).reshape(-1), 2)
    pq.write_table(pa.table({"x": features, "y": labels}), path, row_group_size=row_group_rows)
    return path


def labels(batches: Iterable[dict[str, Any]]) -> list[list[int]]:
    """The labels of each batch, after a look that its features belong to them."""
    found = []
    for batch in batches:
        assert np.array_equal(batch["x"], np.stack([batch["y"], 10 * batch["y"]], axis=1))
        found.append(batch["y"].tolist())
    return found


def rows(batches: Iterable[dict[str, Any]]) -> list[int]:
    """The labels of all batches."""
    return [label for batch in labels(batches) for label in batch]


def cases(text: str) -> list[tuple[str, str]]:
    """Calls, each with what it says in the line below."""
    return list(zip(*[map(str.strip, text.strip().splitlines())] * 2, strict=True))
