"""bool_mask_feature: the values of a row where its mask is true.

The mask is booleans, numbers (0 is false) or the strings true, false, 1, 0, one for each value; another count is an
error. A row in which values or mask are missing has no value. In a sequence each step has a mask: one that is false
leaves the step without a value, so that the steps of a group stay together.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.errors import ConfigError
from penstock.features.feature import Recipe
from penstock.features.sections.types import BoolMaskFeature
from penstock.features.strings import to_arrow
from penstock.features.values import BadItem, BoolArray, Strings, Values, row_of_value, sum_by_row

_WORDS = pa.array(["false", "0", "true", "1"], pa.large_string())
_FIRST_TRUE = 2


def bool_mask_recipe(config: BoolMaskFeature) -> Recipe:
    if len(config.expression) != 2:
        problem = f"has {len(config.expression)} inputs; write two, values and mask: [user:items, user:mask]"
        raise ConfigError.at("expression", problem)
    reads_text = config.num_buckets is None
    return Recipe(tuple(config.expression), _masked, reads_text=reads_text, gives_strings=True)


def _masked(inputs: Sequence[Values]) -> Values:
    values, mask = inputs
    is_true = _truth(mask)
    present = (values.lengths > 0) & (mask.lengths > 0)
    wrong = present & (values.lengths != mask.lengths)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise BadItem(row, None, f"has {values.lengths[row]} values, and {mask.lengths[row]} in its mask")
    kept = np.repeat(present, values.lengths)
    kept[kept] = is_true[np.repeat(present, mask.lengths)]
    items = values.items.take(kept) if isinstance(values.items, Strings) else values.items[kept]
    return Values(items, sum_by_row(kept, values.lengths))


def _truth(mask: Values) -> BoolArray:
    if not isinstance(mask.items, Strings):
        return np.asarray((mask.items != 0) & ~np.isnan(mask.items), np.bool_)
    words = pc.utf8_lower(to_arrow(mask.items))
    indices = pc.index_in(words, _WORDS).fill_null(-1).to_numpy(zero_copy_only=False)
    if len(indices) and indices.min() < 0:
        index = int(np.argmin(indices))
        problem = "is neither true nor false"
        raise BadItem(row_of_value(mask.lengths, index), mask.items[index], problem, source=1)
    return np.asarray(indices >= _FIRST_TRUE, np.bool_)
