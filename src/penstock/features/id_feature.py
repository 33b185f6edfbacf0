"""id_feature: categorical values, one or several in a row, with or without weights, as rows of an embedding table."""

from penstock.features.feature import Recipe
from penstock.features.sections.types import IdFeature


def id_recipe(config: IdFeature) -> Recipe:
    return Recipe((config.expression,))
