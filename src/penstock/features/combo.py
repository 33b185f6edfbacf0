"""combo_feature: the values of several inputs, crossed.

Every value of the first input with every one of the second, and so on, joined with "_": `a, b` and `x, y` give `a_x`,
`a_y`, `b_x`, `b_y`. Numbers count as their decimal strings. A row in which one input is missing has no value.
"""

from collections.abc import Sequence

import numpy as np

from penstock.config.errors import ConfigError
from penstock.features.feature import Recipe
from penstock.features.maps import strings_in
from penstock.features.sections.types import ComboFeature
from penstock.features.strings import as_strings, joined_pairs
from penstock.features.values import Values


def combo_recipe(config: ComboFeature) -> Recipe:
    if not config.expression:
        raise ConfigError.at("expression", "names no column; write those to cross: [user:a, item:b]")
    return Recipe(tuple(config.expression), crossed, reads_text=True, gives_strings=True)


def crossed(inputs: Sequence[Values]) -> Values:
    found = as_strings(inputs[0])
    for other in map(as_strings, inputs[1:]):
        counts = np.repeat(other.lengths, found.lengths)  # how often each value so far is used
        left = np.repeat(np.arange(len(counts)), counts)
        first = np.repeat(np.cumsum(other.lengths, dtype=np.int64) - other.lengths, found.lengths)
        right = np.arange(len(left)) - np.repeat(np.cumsum(counts, dtype=np.int64) - counts - first, counts)
        strings = joined_pairs(strings_in(found), strings_in(other), np.stack([left, right]))
        found = Values(strings, found.lengths * other.lengths)
    return found
