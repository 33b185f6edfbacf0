"""What a run file says of the store that batch files become, in the terms of the store."""

from penstock.config.sizes import MIB
from penstock.prep.merge import DeclaredTypes, MergeOptions, SplitShares
from penstock.prep.merge.options import check_strategy
from penstock.prep.preparing.settings import feature_dtype
from penstock.prep.sections import Compression, Preprocessing, SampleSchema, Splits, StoreTarget
from penstock.readers.store_schema import ArrayNames

COMPRESSED_TARGETS = (StoreTarget.parquet, StoreTarget.ipc)
_LIMIT_PARTS = 4
"""A shuffle may hold one of so many parts of memory.limit; the rest is for the processes themselves."""
_MOST_SHUFFLE_BYTES = 256 * MIB
"""Of one process: with more the files are written no faster."""


def store_options(section: Preprocessing, limit_bytes: int, allow_pickle: bool = False) -> MergeOptions:
    """Form, splits and order of a store. `compression` is for batch files, and for a store where its target has any."""
    is_compressed = section.target in COMPRESSED_TARGETS
    options = MergeOptions(
        splits=_shares(section.splits),
        shuffle=section.shuffle,
        seed=section.seed,
        target=section.target.value,
        heads=section.heads.value,
        compression=section.compression.value if is_compressed else Compression.none.value,
        level=section.compression_level if is_compressed else None,
        workers=section.merge_workers,
        memory_bytes=min(limit_bytes // _LIMIT_PARTS, _MOST_SHUFFLE_BYTES * section.merge_workers),
        allow_pickle=allow_pickle,
        names=_names(section.sample_schema),
        types=_types(section),
    )
    check_strategy(section.merge_strategy.value, options)
    return options


def _names(declared: SampleSchema) -> ArrayNames | None:
    """How arrays are called where the run file says so; else the manifest of the batch files knows."""
    if not declared.model_fields_set & {"features_name", "label_prefix", "mask_prefix"}:
        return None
    return ArrayNames(declared.features_name, declared.label_prefix, declared.mask_prefix)


def _types(section: Preprocessing) -> DeclaredTypes | None:
    """What the run file declares; penstock prep has given its batch files these already, old samples get them now."""
    declared = section.sample_schema
    says_features = "dtype" in section.model_fields_set or not section.use_float32
    types = DeclaredTypes(
        features=feature_dtype(section) if says_features else None,
        labels=declared.labels,
        masks=declared.mask_dtype if "mask_dtype" in declared.model_fields_set else None,
    )
    return None if types == DeclaredTypes() else types


def _shares(splits: Splits | None) -> SplitShares | None:
    return None if splits is None else SplitShares(splits.train, splits.val, splits.test, splits.by.value)
