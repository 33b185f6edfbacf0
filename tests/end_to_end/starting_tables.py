"""Two tables that `penstock init` has to find its way in; what their labels depend on is known."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

TAGS = ["red", "green", "blue", "new", "sale", "rare"]


def write_visits(path: Path, num_rows: int = 40_000) -> None:
    """Dates, joined strings, codes with leading zeros, gaps, and a label of words."""
    rng = np.random.default_rng(0)
    day, hour = rng.integers(0, 700, num_rows), rng.integers(0, 24, num_rows)
    born = np.datetime64("1950-01-01") + rng.integers(0, 20_000, num_rows)
    has_tag = rng.random((num_rows, len(TAGS))) < 0.3
    logit = (hour >= 18) * 1.0 + ((day + 6) % 7 >= 5) * 0.8 + (born > np.datetime64("1985-01-01")) * 0.7
    logit += has_tag @ np.array([1, -1, 0.5, 0, 1.2, -0.7]) - 2
    bought = rng.random(num_rows) < 1 / (1 + np.exp(-logit))
    visited = (np.datetime64("2023-01-01") + day).astype("datetime64[s]") + hour * 3600
    price = np.where(rng.random(num_rows) < 0.1, np.nan, rng.lognormal(3, 1, num_rows).round(2))
    table = pa.table(
        {
            "visited": pa.array([str(each).replace("T", " ") for each in visited]),
            "born": pa.array(born.astype(str).tolist()),
            "tags": ["|".join(t for t, has in zip(TAGS, row, strict=True) if has) for row in has_tag],
            "zip": [f"{code:05d}" for code in rng.integers(0, 300, num_rows)],
            "price": pa.array(price, from_pandas=True),
            "bought": np.where(bought, "yes", "no").tolist(),
        }
    )
    pa.csv.write_csv(table, path)


def write_wide(path: Path, num_rows: int = 20_000, num_columns: int = 300) -> None:
    """Numbers in many columns, of which a tenth counts."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=num_columns) * (rng.random(num_columns) < 0.1)
    numbers = rng.normal(size=(num_rows, num_columns)).astype(np.float32)
    target = rng.random(num_rows) < 1 / (1 + np.exp(-numbers @ weights))
    columns = {f"f{index}": numbers[:, index] for index in range(num_columns)}
    pq.write_table(pa.table({**columns, "target": target.astype(np.int8)}), path)
