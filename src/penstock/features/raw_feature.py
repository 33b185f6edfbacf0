"""raw_feature: numbers or vectors of numbers; with boundaries, ids of the intervals they fall in."""

from penstock.features.feature import Recipe
from penstock.features.sections.types import RawFeature


def raw_recipe(config: RawFeature) -> Recipe:
    return Recipe((config.expression,))
