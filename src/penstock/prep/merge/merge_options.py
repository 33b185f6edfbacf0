"""How batch files are merged."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.config.errors import ConfigError, hint
from penstock.config.sizes import MIB, format_size
from penstock.readers.batch_files import check_compression
from penstock.readers.store_schema import FEATURES, LABELS, ArrayNames, StoreSchema

_COMPRESSIONS = {
    "npy": ("none",),
    "parquet": ("none", "zlib", "zstd", "lz4"),
    "ipc": ("none", "zstd", "lz4"),
    "hdf5": ("none",),
}
"""Of each target; arrays in npy and HDF5 files can be mapped, and so are never compressed."""
_MIN_MEMORY_BYTES = MIB


@dataclass(frozen=True)
class SplitShares:
    train: float = 0.8
    val: float = 0.1
    test: float = 0.1
    by: str = "sample"
    """sample: nothing. group: the samples with the same number in `groups`. file: those of an input file."""

    @property
    def shares(self) -> dict[str, float]:
        shares = {"train": self.train, "val": self.val, "test": self.test}
        return {name: share for name, share in shares.items() if share}


@dataclass(frozen=True)
class DeclaredTypes:
    """Types of the arrays that old files of pickled samples become; what is absent is as in the first sample."""

    features: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    masks: str | None = None

    def applied(self, schema: StoreSchema) -> StoreSchema:
        unknown = next((head for head in self.labels if head not in schema.heads), None)
        if unknown is not None:
            raise ConfigError.at(
                "schema.labels", f"there is no head '{unknown}'; {hint(unknown, schema.heads)}"
            )
        arrays = []
        for spec in schema.arrays:
            part, head = schema.names.part_of(spec.name)
            declared = self.features if part == FEATURES else None
            if head is not None:
                declared = self.labels.get(head) if part == LABELS else self.masks
            arrays.append(spec if declared is None else replace(spec, dtype=np.dtype(declared)))
        return StoreSchema(tuple(arrays), schema.names)

    def check(self, schema: StoreSchema, path: Path) -> None:
        """Refuse arrays of other types than were declared: their bytes are merged as they are."""
        difference = self.applied(schema).difference(schema)
        if difference:
            raise ConfigError(
                f"{path}: {difference}, as schema or dtype say; arrays keep their types in a merge: leave these out, "
                "or write the batch files again"
            )


@dataclass(frozen=True)
class MergeOptions:
    """Form, splits and order of a store. The sections of run files check what each key may be; here is the rest."""

    splits: SplitShares | None = None
    """None: everything is train."""
    shuffle: bool = False
    seed: int = 0
    target: str = "npy"
    heads: str = "npz"
    """npz: labels and masks are one file each. npy: a folder each, with one file for each head."""
    compression: str = "none"
    """Of Parquet and Arrow files."""
    level: int | None = None
    workers: int = 1
    """Processes that write; a single one copies with two threads."""
    memory_bytes: int = 48 * MIB
    """What a shuffle may hold in all processes together."""
    part_bytes: int = 64 * MIB
    """About what one task merges; a killed merge repeats a few tasks for each process."""
    allow_pickle: bool = False
    names: ArrayNames | None = None
    """None: as the manifest of the batch files says, or the usual names."""
    types: DeclaredTypes | None = None
    """Of old samples; None: as in the first of them."""

    def __post_init__(self) -> None:
        check_compression(self.compression, self.level)
        if self.compression not in _COMPRESSIONS[self.target]:
            known = ", ".join(_COMPRESSIONS[self.target])
            raise ConfigError.at(
                "compression", f"{self.compression} is not for target {self.target}; known: {known}"
            )
        if self.memory_bytes < _MIN_MEMORY_BYTES:
            raise ConfigError.at(
                "memory.limit",
                f"leaves {format_size(self.memory_bytes)} to a shuffle (memory_bytes); it must be at least "
                f"{format_size(_MIN_MEMORY_BYTES)}",
            )

    @property
    def has_part_files(self) -> bool:
        """Whether the target is many files, one for each task and split."""
        return self.target in ("parquet", "ipc")

    @property
    def decisive(self) -> Mapping[str, Any]:
        """What the bytes of the result depend on."""
        document = asdict(self)
        for name in ("workers", "memory_bytes", "allow_pickle"):
            del document[name]
        if not self.has_part_files:
            del document["part_bytes"]
        if self.types is None:
            del document["types"]
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "MergeOptions":
        """The inverse of `decisive`."""
        options = dict(document)
        splits, names, types = options.pop("splits"), options.pop("names"), options.pop("types", None)
        return cls(
            **options,
            splits=SplitShares(**splits) if splits else None,
            names=ArrayNames(**names) if names else None,
            types=DeclaredTypes(**types) if types else None,
        )


def with_strategy(options: MergeOptions, strategy: str) -> MergeOptions:
    """Sequential: in bounded memory. Accumulative: one task, in as much memory as all samples take; the same bytes."""
    if strategy != "accumulative":
        return options
    if options.target != "npy":
        raise ConfigError.at(
            "merge_strategy",
            f"accumulative is for target npy only; leave it out with target {options.target}",
        )
    return replace(options, workers=1, memory_bytes=1 << 60, part_bytes=1 << 60)
