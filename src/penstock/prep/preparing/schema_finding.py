"""The schema of all batch files, decided before the first is written: as declared, else as the first sample has it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from penstock.config.errors import DataError
from penstock.prep.preparing.columns import find_roles
from penstock.prep.preparing.extraction import Arrays, Extraction, Item
from penstock.prep.preparing.failures import FileFailed, failing
from penstock.prep.sections import SampleSchema
from penstock.readers.files import DataFile
from penstock.readers.survey import Wanted, survey
from penstock.store.samples import inferred_schema
from penstock.store.schema import ArrayNames, ArraySpec, StoreSchema

_DEFAULT_LABEL = "int16"


@dataclass(frozen=True, slots=True)
class Found:
    """How all files are extracted, and to which arrays."""

    extraction: Extraction
    schema: StoreSchema


def find_schema(
    extraction: Extraction,
    files: Sequence[DataFile],
    feature_dtype: str,
    on_failure: Callable[[FileFailed], None],
) -> Found:
    """Look at the first file that gives something; `on_failure` hears of those before it that fail."""
    for file in files:
        try:
            with failing(file, extraction.place):
                resolved = _with_columns(extraction, file)
                first = next(iter(resolved.items(file)), None)
                if first is not None:
                    return Found(resolved, _schema(first, resolved, feature_dtype, file.path))
        except FileFailed as failed:
            on_failure(failed)
    raise DataError(f"{files[0].path}: neither this file nor any other of the {len(files)} gives a sample")


def _with_columns(extraction: Extraction, file: DataFile) -> Extraction:
    """Without a function of the user: the columns of the first file, in its order, are those of all."""
    if extraction.place is not None:
        return extraction
    columns = survey(extraction.reading, [file], Wanted()).columns
    roles = find_roles(columns, extraction.declared, extraction.group_key, file.path)
    known = {
        "feature_columns": list(roles.features),
        "label_columns": dict(roles.labels),
        "mask_columns": dict(roles.masks),
    }
    return replace(extraction, declared=extraction.declared.model_copy(update=known))


def _schema(first: Item, extraction: Extraction, feature_dtype: str, file: str) -> StoreSchema:
    names, declared = extraction.names, extraction.declared
    if isinstance(first, Arrays):
        found = _of_arrays(first, names, feature_dtype, declared, file)
    else:
        found = inferred_schema(
            first, names=names, feature_dtype=feature_dtype, mask_dtype=declared.mask_dtype, file=file
        )
    specs = _declared_heads(list(found.arrays), names, declared)
    if extraction.group_key is not None:
        specs = [spec for spec in specs if spec.name != names.groups]
        specs.append(ArraySpec(names.groups, np.dtype(np.uint64)))
    return StoreSchema(tuple(_with_declared(spec, names, declared) for spec in specs), names)


def _of_arrays(
    first: Arrays, names: ArrayNames, feature_dtype: str, declared: SampleSchema, file: str
) -> StoreSchema:
    def spec(name: str) -> ArraySpec:
        array = first.values[name]
        dtype = array.dtype
        if name == names.features:
            dtype = np.dtype(feature_dtype)
        elif name.startswith(names.labels):
            dtype = np.dtype(_DEFAULT_LABEL)
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
    if spec.name.startswith(names.labels):
        head = spec.name.removeprefix(names.labels)
        return replace(spec, dtype=np.dtype(declared.labels.get(head, spec.dtype)))
    if spec.name.startswith(names.masks):
        return replace(spec, width=declared.masks.get(spec.name.removeprefix(names.masks), spec.width))
    return spec
