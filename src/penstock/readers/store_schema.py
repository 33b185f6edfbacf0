"""The schema of batch files and stores: names, dtypes and widths of arrays whose first axis counts samples.

By default features are `strategic_features`, the labels of a head `labels_{head}` and its masks `masks_{head}`;
`ArrayNames` has others.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from penstock.config.errors import ConfigError, DataError

DType = np.dtype[Any]

FEATURES, LABELS, MASKS = "features", "labels", "masks"  # the parts of a sample


@dataclass(frozen=True)
class ArrayNames:
    """The names of features and groups, and the prefixes of labels and masks.

    >>> ArrayNames().part_of("masks_move")
    ('masks', 'move')
    """

    features: str = "strategic_features"
    labels: str = "labels_"
    masks: str = "masks_"
    groups: str = "groups"  # what keeps samples together in splits; it is not part of the result

    def __post_init__(self) -> None:
        names = {"labels": self.labels, "masks": self.masks, "features": self.features, "groups": self.groups}
        for one, other in itertools.permutations(names, 2):
            if one in (LABELS, MASKS) and names[other].startswith(names[one]):
                raise ConfigError(
                    f"arrays of {one} begin with '{names[one]}', and so does '{names[other]}' of {other}; "
                    "choose names that can be told apart"
                )

    def part_of(self, array: str) -> tuple[str, str | None]:
        """The key of a sample that has the values of an array, and the head under that key."""
        if array == self.features:
            return FEATURES, None
        for part, prefix in ((LABELS, self.labels), (MASKS, self.masks)):
            if array.startswith(prefix):
                return part, array.removeprefix(prefix)
        return array, None

    def parts_of(self, arrays: Iterable[str]) -> dict[str, tuple[str, str | None]]:
        """`part_of` for each array; an array that is named like a part of samples, but is none, is refused."""
        found = {array: self.part_of(array) for array in arrays}
        taken = next(
            (array for array in (FEATURES, LABELS, MASKS) if found.get(array) == (array, None)), None
        )
        if taken is not None and taken != self.features:
            raise DataError(
                f"array '{taken}' is called like a part of samples; name arrays as ArrayNames says, such as "
                f"'{self.features}' and '{self.label('move')}', or give an ArrayNames with other names"
            )
        return found

    def heads(self, part: str, arrays: Iterable[str]) -> tuple[str, ...]:
        parts = (self.part_of(array) for array in arrays)
        return tuple(head for key, head in parts if key == part and head is not None)

    def label(self, head: str) -> str:
        return f"{self.labels}{head}"

    def mask(self, head: str) -> str:
        return f"{self.masks}{head}"


@dataclass(frozen=True)
class ArraySpec:
    """One array: `width` values per sample; None: one value, and the array has one axis."""

    name: str
    dtype: DType
    width: int | None = None
    columns: tuple[str, ...] = field(default=(), compare=False)
    """The names of the columns that its values came from; empty: unknown."""

    @classmethod
    def of_shape(cls, name: str, dtype: DType, shape: Sequence[int], file: str) -> Self:
        if len(shape) not in (1, 2):
            raise DataError(
                f"{file}: array '{name}' has shape {tuple(shape)}; its axes must be samples and, if there is "
                "a second one, the values of a sample"
            )
        return cls(name, dtype, shape[1] if len(shape) == 2 else None)

    @property
    def row_bytes(self) -> int:
        return self.dtype.itemsize * (1 if self.width is None else self.width)

    def shape(self, num_samples: int) -> tuple[int, ...]:
        return (num_samples,) if self.width is None else (num_samples, self.width)

    def __str__(self) -> str:
        return f"{self.dtype} {'' if self.width is None else f'x {self.width} '}per sample"


@dataclass(frozen=True)
class StoreSchema:
    """All arrays of a store, in order."""

    arrays: tuple[ArraySpec, ...]
    names: ArrayNames = field(default_factory=ArrayNames)

    def __post_init__(self) -> None:
        names = [spec.name for spec in self.arrays]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise DataError(f"array '{twice}' is there twice; names of arrays must differ")

    @cached_property
    def _by_name(self) -> dict[str, ArraySpec]:
        return {spec.name: spec for spec in self.arrays}

    @property
    def row_bytes(self) -> int:
        return sum(spec.row_bytes for spec in self.arrays)

    @property
    def heads(self) -> tuple[str, ...]:
        return self.names.heads(LABELS, self._by_name)

    @property
    def masked_heads(self) -> tuple[str, ...]:
        return self.names.heads(MASKS, self._by_name)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def spec(self, name: str) -> ArraySpec:
        try:
            return self._by_name[name]
        except KeyError:
            known = ", ".join(self._by_name) or "none"
            raise DataError(f"there is no array '{name}'; known: {known}") from None

    def without(self, name: str) -> Self:
        return type(self)(tuple(spec for spec in self.arrays if spec.name != name), self.names)

    def with_columns(self, known: "StoreSchema") -> Self:
        """With the column names that another schema knows."""
        arrays = (
            replace(spec, columns=known.spec(spec.name).columns) if spec.name in known else spec
            for spec in self.arrays
        )
        return type(self)(tuple(arrays), self.names)

    def difference(self, other: "StoreSchema") -> str | None:
        """The first difference of another schema, in one line; order does not count."""
        for spec in self.arrays:
            found = other._by_name.get(spec.name)
            if found is None:
                return f"array '{spec.name}' is missing"
            if found != spec:
                return f"array '{spec.name}' is {found}, not {spec}"
        unknown = [spec.name for spec in other.arrays if spec.name not in self]
        return f"array '{unknown[0]}' is not in the schema" if unknown else None

    def as_document(self) -> dict[str, Any]:
        arrays = [
            {"name": spec.name, "dtype": spec.dtype.str, "width": spec.width}
            | ({"columns": list(spec.columns)} if spec.columns else {})
            for spec in self.arrays
        ]
        return {"names": asdict(self.names), "arrays": arrays}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Self:
        arrays = (
            ArraySpec(item["name"], np.dtype(item["dtype"]), item["width"], tuple(item.get("columns", ())))
            for item in document["arrays"]
        )
        return cls(tuple(arrays), ArrayNames(**document["names"]))


def sample_schema(
    num_features: int,
    heads: Sequence[str] | Mapping[str, DType],
    mask_widths: Mapping[str, int],
    *,
    names: ArrayNames | None = None,
    feature_dtype: DTypeLike = np.float32,
    label_dtype: DTypeLike = np.int16,
    mask_dtype: DTypeLike = np.int8,
) -> StoreSchema:
    """`heads` may have the type of the labels of each head; else all are of `label_dtype`."""
    names = names or ArrayNames()
    features = ArraySpec(names.features, np.dtype(feature_dtype), num_features)
    types = heads if isinstance(heads, Mapping) else dict.fromkeys(heads, np.dtype(label_dtype))
    labels = [ArraySpec(names.label(head), dtype) for head, dtype in types.items()]
    masks = [ArraySpec(names.mask(head), np.dtype(mask_dtype), width) for head, width in mask_widths.items()]
    return StoreSchema((features, *labels, *masks), names)
