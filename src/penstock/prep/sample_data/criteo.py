"""The `criteo` kind: 13 numbers and 26 ids, already encoded, with one label; the shape of display-ad logs."""

import numpy as np
import pyarrow as pa

from penstock.prep.sample_data.blocks import (
    BLOCK_ROWS,
    Block,
    FloatArray,
    IntArray,
    calibrator,
    column,
    generator,
    hashed_effects,
    or_zero,
    sigmoid,
    zipf_ids,
)

NUM_NUMBERS = 13
CARDINALITIES = (
    1_400, 550, 20_000, 12_000, 300, 20, 4_000, 600, 4, 8_000, 3_000, 16_000, 2_000, 26, 3_500, 15_000, 10,
    1_500, 1_000, 5, 18_000, 18, 16, 9_000, 90, 7_000,
)  # fmt: skip
"""How many ids `cat_1` to `cat_26` have."""

_SMALL = 1_000
"""Columns with fewer ids carry most of the signal: each id is seen often enough to be learned."""
_SMALL_COLUMN_SCALE, _LARGE_COLUMN_SCALE, _CROSS_SCALE = 0.42, 0.06, 0.35
_CROSSED_COLUMNS = ((5, 13), (8, 16), (19, 21), (22, 24))
"""Pairs of small columns (counted from 0) whose ids act together, beyond what each does alone."""
_MISSING_SHARES = np.array([0.4, 0.0, 0.2, 0.2, 0.03, 0.2, 0.04, 0.0, 0.04, 0.45, 0.04, 0.75, 0.2])


class Criteo:
    """Numbers are log(1 + count), some missing; ids are Zipf in their column's range."""

    planted = (
        "label is drawn with a probability whose logit adds one effect per id (larger for columns with few "
        "ids), products of effects for four pairs of columns, and a slope per number, where a missing number "
        "counts as 0"
    )

    def __init__(self, seed: int) -> None:
        self._seed = seed
        rng = generator(seed, "criteo.model")
        self._slopes = rng.normal(0.0, 0.35, NUM_NUMBERS)
        self._centers = rng.uniform(0.8, 2.2, NUM_NUMBERS)
        self._column_keys = rng.integers(0, 2**62, len(CARDINALITIES))
        self._cross_keys = rng.integers(0, 2**62, (len(_CROSSED_COLUMNS), 2))
        unseen_rows = self._draw_rows(generator(seed, "criteo.calibration"))
        self._calibrated = calibrator(self._raw_logit(*unseen_rows))

    def block(self, index: int) -> Block:
        rng = generator(self._seed, "criteo.rows", index)
        numbers, ids = self._draw_rows(rng)
        probability = sigmoid(self._calibrated(self._raw_logit(numbers, ids)))
        label = (rng.random(BLOCK_ROWS) < probability).astype(np.int64)
        columns = {"label": column(label)}
        columns |= {f"int_{number}": column(values, pa.float32()) for number, values in enumerate(numbers, 1)}
        columns |= {f"cat_{number}": column(values) for number, values in enumerate(ids, 1)}
        return Block(pa.RecordBatch.from_pydict(columns), {"label": probability}, {})

    def _draw_rows(self, rng: np.random.Generator) -> tuple[list[FloatArray], list[IntArray]]:
        numbers = []
        for center, missing in zip(self._centers, _MISSING_SHARES, strict=True):
            values = np.log1p(np.floor(np.exp(rng.normal(center, 1.0, BLOCK_ROWS))))
            values[rng.random(BLOCK_ROWS) < missing] = np.nan
            numbers.append(values)
        return numbers, [zipf_ids(rng, cardinality, BLOCK_ROWS) for cardinality in CARDINALITIES]

    def _raw_logit(self, numbers: list[FloatArray], ids: list[IntArray]) -> FloatArray:
        logit = np.zeros(BLOCK_ROWS)
        for values, slope in zip(numbers, self._slopes, strict=True):
            logit += slope * or_zero(values)
        for column_ids, cardinality, key in zip(ids, CARDINALITIES, self._column_keys, strict=True):
            scale = _SMALL_COLUMN_SCALE if cardinality < _SMALL else _LARGE_COLUMN_SCALE
            logit += scale * hashed_effects(column_ids, int(key))
        for (left, right), (left_key, right_key) in zip(_CROSSED_COLUMNS, self._cross_keys, strict=True):
            left_effect = hashed_effects(ids[left], int(left_key))
            logit += _CROSS_SCALE * left_effect * hashed_effects(ids[right], int(right_key))
        return logit
