"""match_feature: what a map of maps has for two keys of the row.

The map is a string `pk1^sk1:0.2,sk2:0.3|pk2^sk4:0.1`, or a map column from the first key to `sk1:0.2,sk2:0.3`. A key
that is ALL stands for all that there are. Where keys have several values, every first key is taken with every second
one. Keys that the map does not have count for nothing; a row without any gets default_value.

- Ids (need_discrete, or an option such as hash_bucket_size): each value as it is written; with show_pkey and show_skey
  as `pkey_skey_value`.
- Numbers: the sum of all that were found.
"""

from collections.abc import Sequence
from functools import partial

import numpy as np

from penstock.config.errors import ConfigError
from penstock.features.combine import combined
from penstock.features.feature import Recipe, has_id_size
from penstock.features.maps import find, pairs_of, strings_in
from penstock.features.sections.types import MatchFeature
from penstock.features.strings import as_strings, joined_pairs, split
from penstock.features.values import BadItem, Int64Array, Strings, Values, one_per_row, sum_by_row

ALL = "ALL"


def match_recipe(config: MatchFeature) -> Recipe:
    gives_strings = config.need_discrete or has_id_size(config)
    if not gives_strings and (config.value_dim or 1) > 1:
        raise ConfigError.at("value_dim", f"is {config.value_dim}; numbers of a match are one, their sum")
    return Recipe(
        (config.nested_map, *(key for key in (config.pkey, config.skey) if key != ALL)),
        partial(_matched, config=config, gives_strings=gives_strings),
        reads_text=True,
        maps={config.nested_map: "|"},
        gives_strings=gives_strings,
    )


def _matched(inputs: Sequence[Values], config: MatchFeature, gives_strings: bool) -> Values:
    nested, *keys = inputs
    if nested.weights is not None:
        raise BadItem(None, None, "is a map to numbers, and not to strings such as sk1:0.2,sk2:0.3")
    outer = pairs_of(nested, "^")
    # The maps of the first keys, of all rows, and how many of them each row has.
    if config.pkey == ALL:
        chosen, num_maps = np.arange(len(outer.has_value)), outer.keys.lengths
    else:
        first_keys = as_strings(keys.pop(0))
        found = find(first_keys, outer.keys)
        chosen, num_maps = found[found >= 0], sum_by_row(found >= 0, first_keys.lengths)
    maps = Values(outer.strings(chosen), one_per_row(len(chosen)), separators=(b",",))
    try:
        inner = pairs_of(split(maps))
    except BadItem as error:
        raise error.of(num_maps) from error
    # The entries of the second keys in each of these maps.
    if config.skey == ALL:
        entries, num_entries = np.arange(len(inner.has_value)), inner.keys.lengths
    else:
        second_keys = as_strings(keys.pop(0)).repeated(num_maps)
        found = find(second_keys, inner.keys)
        entries, num_entries = found[found >= 0], sum_by_row(found >= 0, second_keys.lengths)
    lengths = sum_by_row(num_entries, num_maps)
    if not gives_strings:
        return combined(inner.vectors(entries, lengths), lengths, "sum")
    found_values = inner.strings(entries)
    if config.show_skey:
        found_values = _prefixed(strings_in(inner.keys), entries, found_values)
    if config.show_pkey:
        map_of_entry = np.repeat(chosen, num_entries)
        found_values = _prefixed(strings_in(outer.keys), map_of_entry, found_values)
    return Values(found_values, lengths)


def _prefixed(keys: Strings, indices: Int64Array, values: Strings) -> Strings:
    return joined_pairs(keys, values, np.stack([indices, np.arange(len(values))]))
