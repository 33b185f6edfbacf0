"""combine_feature: the values of a row, made one number by `combiner`.

`value_map` says which numbers strings stand for; a string that is not in it is an error. A row without values has no
number, and gets default_value; `count` counts it as 0.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.features.feature import Recipe
from penstock.features.maps import strings_in
from penstock.features.sections.types import CombineFeature
from penstock.features.strings import as_numbers, as_strings, to_arrow
from penstock.features.values import BadItem, Int32Array, NumberArray, Strings, Values, row_of_value


def combine_recipe(config: CombineFeature) -> Recipe:
    reads_text = bool(config.value_map) or config.combiner == "count"
    transform = partial(_combined_values, value_map=config.value_map, combiner=config.combiner)
    return Recipe((config.expression,), transform, reads_text=reads_text)


def _combined_values(inputs: Sequence[Values], value_map: dict[str, float], combiner: str) -> Values:
    [values] = inputs
    if combiner == "count":
        return Values(values.lengths.astype(np.int64), np.ones(len(values.lengths), np.int32))
    if value_map:
        values = as_strings(values)
        strings = strings_in(values)
        known = pa.array(list(value_map), pa.large_string())
        indices = pc.index_in(to_arrow(strings), known).fill_null(-1).to_numpy(zero_copy_only=False)
        if len(indices) and indices.min() < 0:
            index = int(np.argmin(indices))
            raise BadItem(row_of_value(values.lengths, index), strings[index], "is not in value_map")
        return combined(np.array(list(value_map.values()))[indices], values.lengths, combiner)
    values = as_numbers(values)
    assert not isinstance(values.items, Strings)
    numbers = values.items if values.items.dtype == np.int64 else values.items.astype(np.float64)
    return combined(numbers, values.lengths, combiner)


def combined(numbers: NumberArray, lengths: Int32Array, combiner: str) -> Values:
    """One number, or one vector, of those of each row; none where a row has none."""
    present = lengths > 0
    starts = (np.cumsum(lengths, dtype=np.int64) - lengths)[present]
    width = numbers.shape[1] if numbers.ndim > 1 else 1
    if len(starts) == len(numbers) or not len(starts):  # one in each row
        found = numbers
    elif combiner in ("min", "max"):
        found = (np.minimum if combiner == "min" else np.maximum).reduceat(numbers, starts, axis=0)
    else:
        found = np.add.reduceat(numbers, starts, axis=0)
        if combiner in ("mean", "avg"):
            counts = lengths[present]
            found = found / (counts if numbers.ndim == 1 else counts[:, None])
    return Values(found.reshape(-1), present.astype(np.int32) * np.int32(width))
