"""The schema of all batch files: as declared, else as the first sample has it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.prep.preparing.extraction.extraction import Arrays, Extraction, Item
from penstock.prep.preparing.extraction.feature_groups import feature_columns, group_arrays
from penstock.prep.preparing.failures import failing
from penstock.prep.sections import SampleSchema
from penstock.readers.files import DataFile
from penstock.readers.samples import Sample, inferred_schema, label_type
from penstock.readers.store_schema import FEATURES, ArrayNames, ArraySpec, StoreSchema


@dataclass(frozen=True, slots=True)
class Found:
    """How all files are extracted, and to which arrays."""

    extraction: Extraction
    schema: StoreSchema


def found_in(file: DataFile, extraction: Extraction, feature_types: Mapping[str, str]) -> Found | None:
    """What the first sample of a file tells; None where it gives none. `feature_types` has that of each array."""
    with failing(file, extraction.place):
        found = extraction.first(file)
        if found is None:
            return None
        resolved, first = found
        schema = _schema(first, resolved, feature_types, file.path)
        return Found(resolved, schema if resolved is extraction else _with_columns(schema, resolved.declared))


def _with_columns(schema: StoreSchema, declared: SampleSchema) -> StoreSchema:
    """With the names of feature columns, where each is one number: of lists nobody can tell which is which."""
    columns = feature_columns(declared)
    arrays = (
        replace(spec, columns=names) if len(names := columns.get(spec.name, ())) == spec.width else spec
        for spec in schema.arrays
    )
    return StoreSchema(tuple(arrays), schema.names)


def _schema(first: Item, extraction: Extraction, feature_types: Mapping[str, str], file: str) -> StoreSchema:
    names, declared = extraction.names, extraction.declared
    if isinstance(first, Arrays):
        found = _of_arrays(first, names, feature_types, declared, file)
    else:
        found = _of_sample(first, names, feature_types, declared, file)
    specs = _declared_heads(list(found.arrays), names, declared)
    if extraction.group_key is not None:
        specs = [spec for spec in specs if spec.name != names.groups]
        specs.append(ArraySpec(names.groups, np.dtype(np.uint64)))
    return StoreSchema(tuple(_with_declared(spec, names, declared) for spec in specs), names)


def _of_sample(
    first: Sample, names: ArrayNames, feature_types: Mapping[str, str], declared: SampleSchema, file: str
) -> StoreSchema:
    groups = [
        ArraySpec.of_shape(array, np.dtype(feature_types[array]), (1, *np.shape(first[array])), file)
        for array in group_arrays(declared).values()
        if array in first
    ]
    all_grouped = bool(groups) and FEATURES not in first
    found = inferred_schema(
        {**first, FEATURES: ()} if all_grouped else first,
        names=names,
        feature_dtype=feature_types[names.features],
        mask_dtype=declared.mask_dtype,
        file=file,
    )
    features, *heads = found.arrays
    return StoreSchema((*([] if all_grouped else [features]), *groups, *heads), names)


def _of_arrays(
    first: Arrays, names: ArrayNames, feature_types: Mapping[str, str], declared: SampleSchema, file: str
) -> StoreSchema:
    def spec(name: str) -> ArraySpec:
        array = first.values[name]
        dtype = array.dtype
        if name in feature_types:
            dtype = np.dtype(feature_types[name])
        elif name.startswith(names.labels):
            dtype = label_type(array[:1])  # as samples do that come one by one
        elif name.startswith(names.masks):
            dtype = np.dtype(declared.mask_dtype)
        return ArraySpec.of_shape(name, dtype, array.shape, file)

    return StoreSchema(tuple(spec(name) for name in first.values), names)


def _declared_heads(specs: list[ArraySpec], names: ArrayNames, declared: SampleSchema) -> list[ArraySpec]:
    """With heads that are declared but not in the first sample: that it lacks them is told with its place."""
    present = {spec.name for spec in specs}
    labels = [ArraySpec(names.label(head), np.dtype(kind)) for head, kind in declared.labels.items()]
    masks = [
        ArraySpec(names.mask(head), np.dtype(declared.mask_dtype), width)
        for head, width in declared.masks.items()
    ]
    return specs + [spec for spec in (*labels, *masks) if spec.name not in present]


def _with_declared(spec: ArraySpec, names: ArrayNames, declared: SampleSchema) -> ArraySpec:
    if spec.name == names.features:
        return replace(spec, width=declared.num_features or spec.width)
    if spec.name.startswith(f"{names.features}_"):
        width = declared.feature_groups.get(spec.name.removeprefix(f"{names.features}_"))
        return replace(spec, width=width if isinstance(width, int) else spec.width)
    if spec.name.startswith(names.labels):
        head = spec.name.removeprefix(names.labels)
        return replace(spec, dtype=np.dtype(declared.labels.get(head, spec.dtype)))
    if spec.name.startswith(names.masks):
        return replace(spec, width=declared.masks.get(spec.name.removeprefix(names.masks), spec.width))
    return spec
