"""What batch files and stores hold: the schema of their arrays, and the manifest that says which files belong together.

The first axis of arrays counts samples. By default features are `strategic_features`, the labels of a head
`labels_{head}` and its masks `masks_{head}`; `ArrayNames` has others.

`manifest.json` is written last. A folder of batch files without one is not finished; a store without one is none.
Manifests and the other JSON documents beside them appear when they are whole, and carry kind, version and a checksum.
"""

import itertools
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike

from penstock.config.errors import ConfigError, DataError
from penstock.runtime.durable import replacing

DType = np.dtype[Any]

FEATURES, LABELS, MASKS = "features", "labels", "masks"  # the parts of a sample

MANIFEST_NAME = "manifest.json"
PREPARATION_NAME = "preparation.json"
BATCHES_KIND, BATCHES_VERSION = "penstock batches", 1
STORE_KIND, STORE_VERSION = "penstock store", 1

_ENVELOPE = ("kind", "version", "crc32")


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


# Manifests.


class DamagedFile(DataError):
    """Bytes of a file are missing, or not those that were written; the cure depends on where it lies."""

    def __init__(self, problem: str, cure: str = "write it again") -> None:
        super().__init__(f"{problem}; {cure}")
        self.problem, self.cure = problem, cure

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.problem, self.cure)


class MissingFile(DamagedFile):
    """The whole file is gone."""


class DamagedStore(DataError):
    """The manifest of a store is not what was written."""


@dataclass(frozen=True)
class BatchRecord:
    name: str
    num_samples: int
    num_bytes: int
    checksum: int  # of its header, which has the checksums of the arrays


@dataclass(frozen=True)
class InputRecord:
    """A raw file as it was when it was read."""

    path: str
    num_bytes: int
    checksum: int
    modified_ns: int | None = None  # None: the object store does not say
    num_samples: int = 0


@dataclass(frozen=True)
class StoreManifest:
    """A folder of batch files: what they were made of, and what is in them."""

    inputs: tuple[InputRecord, ...]
    batches: tuple[BatchRecord, ...]  # in the order in which they are merged
    schema: StoreSchema
    settings: Mapping[str, Any]  # those of the run file that decide what is in the batch files

    @property
    def num_samples(self) -> int:
        return sum(batch.num_samples for batch in self.batches)

    def write(self, directory: Path) -> None:
        """Everything that it lists must be there already."""
        body = {
            "num_samples": self.num_samples,
            "schema": self.schema.as_document(),
            "settings": dict(self.settings),
            "inputs": [asdict(record) for record in self.inputs],
            "batches": [asdict(record) for record in self.batches],
        }
        write_document(directory / MANIFEST_NAME, BATCHES_KIND, BATCHES_VERSION, body)

    @classmethod
    def read(cls, directory: Path) -> Self:
        absent = "there is none: the batch files are not finished; run penstock prep"
        try:
            body = read_document(directory / MANIFEST_NAME, BATCHES_KIND, BATCHES_VERSION, absent)
        except DamagedFile as error:
            if not (directory / PREPARATION_NAME).exists():
                raise
            raise DataError(f"{error.problem}; run penstock prep, which writes it again") from error
        return cls(
            inputs=tuple(InputRecord(**record) for record in body["inputs"]),
            batches=tuple(BatchRecord(**record) for record in body["batches"]),
            schema=StoreSchema.from_document(body["schema"]),
            settings=body["settings"],
        )


def is_unfinished(intermediate_dir: Path) -> bool:
    """Whether its batch files are of a preparation that is still running, or was stopped."""
    return (intermediate_dir / PREPARATION_NAME).exists() and not (intermediate_dir / MANIFEST_NAME).exists()


def check_finished(intermediate_dir: Path) -> None:
    if is_unfinished(intermediate_dir):
        raise DataError(
            f"{intermediate_dir}: its batch files are not finished; run penstock prep, which goes on with them"
        )


def read_store(folder: Path, name: str = MANIFEST_NAME) -> dict[str, Any]:
    absent = "there is none: no merge has finished here; run penstock merge"
    try:
        return read_document(folder / name, STORE_KIND, STORE_VERSION, absent)
    except DamagedFile as error:
        # Without it nobody knows which files are of the store: a merge would replace none of them.
        cure = "remove it and the files of the store beside it, and merge again, or choose another output_dir"
        raise DamagedStore(f"{error.problem}; {cure}") from error


def write_document(path: Path, kind: str, version: int, body: Mapping[str, Any]) -> None:
    """Write a JSON document durably, in place of one that may be there."""
    try:
        with replacing(path) as stream:
            stream.write(encoded_document(kind, version, body))
    except OSError as error:
        raise DataError(
            f"{path}: cannot be written: {error.strerror or error}; nothing is left of it"
        ) from error


def encoded_document(kind: str, version: int, body: Mapping[str, Any]) -> bytes:
    envelope = {"kind": kind, "version": version, "crc32": _checksum(body)}
    return (json.dumps({**envelope, **body}, indent=1) + "\n").encode()


def read_document(path: Path, kind: str, version: int, absent: str) -> dict[str, Any]:
    """The body of a document; DataError, with `absent` where there is no such file, says why there is none."""
    try:
        text = path.read_bytes()
    except FileNotFoundError:
        raise DataError(f"{path}: {absent}") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    try:
        document = json.loads(text)
        found = document["kind"], document["version"], document["crc32"]
    except (ValueError, KeyError, TypeError):
        raise DamagedFile(f"{path}: is damaged or no {kind}") from None
    if found[0] != kind:
        raise DataError(f"{path}: is of kind '{found[0]}', but '{kind}' is wanted here; give another folder")
    if found[1] != version:
        raise DataError(f"{path}: has version {found[1]}, but this Penstock reads {version}; upgrade it")
    body = {key: value for key, value in document.items() if key not in _ENVELOPE}
    if _checksum(body) != found[2]:
        raise DamagedFile(f"{path}: is damaged: its checksum differs")
    return body


def _checksum(body: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())
