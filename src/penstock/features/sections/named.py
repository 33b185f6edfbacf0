"""Features by the names under which feature groups call them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.config.errors import KeyPath
from penstock.features.sections.feature import FeatureConfig, SequenceFeature


@dataclass(frozen=True, slots=True)
class NamedFeature:
    """One feature of a run file: where it stands, its name, and its section."""

    place: KeyPath
    name: str
    section: Any


def named_features(configs: Sequence[FeatureConfig]) -> Iterator[NamedFeature]:
    """Every feature in order; those of a sequence are called sequence__feature."""
    for index, config in enumerate(configs):
        chosen = config.chosen("feature")
        if chosen is None:
            continue
        kind, section = chosen
        place: KeyPath = ("feature_configs", index, kind)
        if not isinstance(section, SequenceFeature):
            yield NamedFeature(place, section.feature_name, section)
            continue
        for position, step in enumerate(section.features):
            if (inner := step.chosen("feature")) is not None:
                name = f"{section.sequence_name}__{inner[1].feature_name}"
                yield NamedFeature((*place, "features", position, inner[0]), name, inner[1])
