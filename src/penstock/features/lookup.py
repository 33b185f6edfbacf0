"""lookup_feature: what the map of a row has for the keys of the row.

The map is a map column or a string `k1:v1\\x1dk2:v2`; a key ends at the first colon. Of several entries with one key
the first counts. Keys that the map does not have count for nothing; a row without any gets default_value.

- Ids (need_discrete, or an option such as hash_bucket_size): the value of each key as it is written, with need_key
  as `key_value`.
- Numbers: value_dim numbers in each value, value_separator between them; those of several keys become one by
  `combiner`, number by number. An empty combiner keeps them all.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from penstock.features.combine import combined
from penstock.features.feature import Recipe, has_id_size
from penstock.features.maps import find, pairs_of, strings_in
from penstock.features.sections.types import LookupFeature
from penstock.features.strings import as_strings, joined_pairs
from penstock.features.values import Values, sum_by_row


def lookup_recipe(config: LookupFeature) -> Recipe:
    gives_strings = config.need_discrete or has_id_size(config)
    return Recipe(
        (config.map, config.key),
        partial(_looked_up, config=config, gives_strings=gives_strings),
        reads_text=True,
        maps={config.map: config.separator},
        gives_strings=gives_strings,
    )


def _looked_up(inputs: Sequence[Values], config: LookupFeature, gives_strings: bool) -> Values:
    entries, keys = pairs_of(inputs[0]), as_strings(inputs[1])
    found = find(keys, entries.keys)
    is_hit = found >= 0
    is_hit[is_hit] = entries.are_present[found[is_hit]]
    lengths, hits = sum_by_row(is_hit, keys.lengths), found[is_hit]
    if gives_strings:
        values = entries.strings(hits)
        if config.need_key:
            pairs = np.stack([np.flatnonzero(is_hit), np.arange(len(hits))])
            values = joined_pairs(strings_in(keys), values, pairs)
        return Values(values, lengths)
    if config.combiner == "count":
        return Values(lengths.astype(np.int64), np.ones(len(lengths), np.int32))
    numbers = entries.vectors(hits, lengths, config.value_separator, config.value_dim or 1)
    if not config.combiner:
        return Values(numbers.reshape(-1), lengths * np.int32(numbers.shape[1]))
    return combined(numbers, lengths, config.combiner)
