"""kv_dot_product: the dot product of two sets of key:value, over the keys that both have.

Sets are map columns, or strings `a:0.5\\x1db:1.5` with kv_delimiter between key and value; the last one counts, and a
key alone has the value 1. A key that stands twice counts with the sum of its values. Without a common key the product
is 0; a row in which one set is missing has none, and gets default_value.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from penstock.features.feature import Recipe
from penstock.features.maps import entries_of, find, strings_in
from penstock.features.sections.types import KvDotProduct
from penstock.features.values import BadItem, Float64Array, Values, row_of_value, sum_by_row


def dot_product_recipe(config: KvDotProduct) -> Recipe:
    delimiter = str(config.kv_delimiter or ":")
    return Recipe(
        (config.query, config.document),
        partial(_dot_product, delimiter=delimiter),
        reads_text=True,
        maps={config.query: config.separator, config.document: config.separator},
    )


def _dot_product(inputs: Sequence[Values], delimiter: str) -> Values:
    (query, query_numbers), (document, numbers) = (
        _weighted_keys(values, delimiter, source) for source, values in enumerate(inputs)
    )
    # All values of a key stand at its first entry.
    totals = np.bincount(find(query, query), query_numbers, len(query_numbers))
    found = find(document, query)
    products = np.where(found >= 0, numbers, 0.0)
    products[found >= 0] *= totals[found[found >= 0]]
    rows = np.repeat(np.arange(len(document.lengths)), document.lengths)
    sums = np.bincount(rows, products, len(document.lengths))
    present = (query.lengths > 0) & (document.lengths > 0)
    return Values(sums[present], present.astype(np.int32))


def _weighted_keys(values: Values, delimiter: str, source: int) -> tuple[Values, Float64Array]:
    entries = entries_of(values, delimiter, last=True)
    keys, given = entries.keys, entries.has_value
    numbers = np.ones(len(given))
    try:
        numbers[given] = entries.vectors(given, sum_by_row(given, keys.lengths))[:, 0]
    except BadItem as error:
        raise BadItem(error.row, error.value, error.problem, source) from error
    if (wrong := np.isnan(numbers)).any():
        index = int(np.argmax(wrong))
        raise BadItem(row_of_value(keys.lengths, index), strings_in(keys)[index], "has no number", source)
    return keys, numbers
