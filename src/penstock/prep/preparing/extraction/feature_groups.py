"""Features in groups: each group is an array of its own, with a type of its own.

A group is so many features, counted from the first on behind the groups before it, or some columns. What is in no group
stays in the array of all others.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.prep.sections import SampleSchema
from penstock.readers.samples import Sample
from penstock.readers.store_schema import FEATURES

_KEY = "preprocessing.schema.feature_groups"


def group_arrays(declared: SampleSchema) -> dict[str, str]:
    """The names of the arrays of all groups, by group."""
    return {group: declared.group_array(group) for group in declared.feature_groups}


def feature_columns(declared: SampleSchema) -> dict[str, tuple[str, ...]]:
    """The columns of each array of features, where files are read by columns that are known by now.

    >>> feature_columns(SampleSchema(feature_columns=["gold", "wood", "age"], feature_groups={"wealth": 2}))
    {'strategic_features_wealth': ('gold', 'wood'), 'strategic_features': ('age',)}
    """
    others = tuple(declared.feature_columns)
    found: dict[str, tuple[str, ...]] = {}
    for group, features in declared.feature_groups.items():
        found[declared.group_array(group)] = (
            others[:features] if isinstance(features, int) else tuple(features)
        )
        others = others[features:] if isinstance(features, int) else others
    return found | {declared.features_name: others}


def split_sample(sample: Sample, declared: SampleSchema, place: str) -> Sample:
    """The same sample with each group by the name of its array; those that it has so already stay."""
    if not declared.feature_groups:
        return sample
    cuts = dict(_cuts(declared, sample, place))
    if not cuts or FEATURES not in sample:
        return sample
    features = sample[FEATURES]
    found = {**sample, **{name: features[start:end] for name, (start, end) in cuts.items()}}
    end = _end(cuts, len(features), place)
    found[FEATURES] = features[end:]
    if len(features) == end:
        del found[FEATURES]
    return found


def split_arrays(
    arrays: Mapping[str, NDArray[Any]], declared: SampleSchema, place: str
) -> dict[str, NDArray[Any]]:
    """The same for whole arrays."""
    features = arrays.get(declared.features_name)
    if not declared.feature_groups or features is None or features.ndim != 2:
        return dict(arrays)
    cuts = dict(_cuts(declared, arrays, place))
    parts = {name: features[:, start:end] for name, (start, end) in cuts.items()}
    rest = features[:, _end(cuts, features.shape[1], place) :]
    others = {name: array for name, array in arrays.items() if name != declared.features_name}
    return ({declared.features_name: rest} if rest.shape[1] else {}) | parts | others


def _end(cuts: Mapping[str, tuple[int, int]], num_features: int, place: str) -> int:
    """Where the last group ends, which must be among the features."""
    end = max((end for _, end in cuts.values()), default=0)
    if num_features < end:
        raise DataError(f"{place}: {FEATURES}: has {num_features}, but the groups of {_KEY} are {end}")
    return end


def _cuts(
    declared: SampleSchema, present: Mapping[str, Any], place: str
) -> Iterator[tuple[str, tuple[int, int]]]:
    """By array: which of all features are those of a group that is not there yet."""
    start = 0
    for group, features in declared.feature_groups.items():
        name = declared.group_array(group)
        if name in present:
            continue
        if not isinstance(features, int):
            raise DataError(
                f"{place}: {_KEY}: '{group}' names columns, but there are none here; say how many features it has"
            )
        yield name, (start, start + features)
        start += features
