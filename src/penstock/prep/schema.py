"""The schema of all batch files: as declared, else as the first sample has it.

The first sample is made here, or in a process that the user's code may end.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.config.errors import DataError
from penstock.prep.extract import Arrays, Extraction, Item
from penstock.prep.sections import Preprocessing, SampleSchema
from penstock.prep.tasks import FileFailed, raise_failure
from penstock.prep.watch import advice_after
from penstock.readers.files import DataFile
from penstock.readers.samples import Sample, inferred_schema, label_type
from penstock.readers.store_schema import FEATURES, ArrayNames, ArraySpec, StoreSchema
from penstock.runtime.worker_process import WorkerError
from penstock.runtime.workers import Supervisor, WorkerEnd, WorkerPool

Found = tuple[Extraction, StoreSchema]
"""How all files are extracted, and to which arrays."""


@dataclass(frozen=True, slots=True)
class SchemaSearch:
    extraction: Extraction
    files: tuple[DataFile, ...]
    feature_types: Mapping[str, str]
    skips: bool
    """Look further where a file fails: its task will say so."""
    reason: str | None = None


def find_schema(search: SchemaSearch, report: Callable[[DataFile], None] = lambda file: None) -> Found:
    reason = search.reason
    for file in search.files:
        report(file)
        try:
            found = found_in(file, search.extraction, search.feature_types)
        except FileFailed as failed:
            if not search.skips:
                raise
            reason = reason or str(failed)
            continue
        if found is not None:
            return found
    if reason is not None:
        raise DataError(f"{reason}; no file is left that gives a sample")
    first, num_files = search.files[0].path, len(search.files)
    if num_files == 1:
        raise DataError(f"{first}: gives no sample")
    raise DataError(f"{first}: neither this file nor any other of the {num_files} gives a sample")


def find_schema_in_worker(search: SchemaSearch) -> Found:
    """The same in another process; a file at which that ends has failed."""
    with WorkerPool(find_schema, 1, _SearchSupervisor()) as pool:
        [(_, found)] = pool.run([search])
    return found


class _SearchSupervisor(Supervisor[SchemaSearch]):
    _file: DataFile | None = None

    def received(self, task: SchemaSearch, event: DataFile) -> bool:
        self._file = event
        return False

    def died(self, task: SchemaSearch, end: WorkerEnd) -> SchemaSearch:
        """The search goes on behind the file at which the worker has ended."""
        file = self._file or task.files[0]
        reason = f"{file.path}: a worker process {end.how} at this file; {advice_after(end)}"
        if not task.skips:
            raise WorkerError(reason) from end.cause
        rest = task.files[task.files.index(file) + 1 :]
        return replace(task, files=rest, reason=task.reason or reason)


def feature_dtype(section: Preprocessing) -> str:
    """The type of the features' numbers: `dtype` where it is written, else what `use_float32` says."""
    if "dtype" not in section.model_fields_set and not section.use_float32:
        return "float64"
    return section.dtype.value


def feature_types(section: Preprocessing) -> dict[str, str]:
    """The type of each array of features: that of its group where the run file has one, else that of all features."""
    usual, declared = feature_dtype(section), section.sample_schema
    own = {group: dtype.value for group, dtype in section.feature_dtypes.items()}
    groups = {declared.group_array(group): own.get(group, usual) for group in declared.feature_groups}
    return {declared.features_name: usual} | groups


def found_in(file: DataFile, extraction: Extraction, feature_types: Mapping[str, str]) -> Found | None:
    """What the first sample of a file tells; None where it gives none."""
    try:
        found = extraction.first(file)
        if found is None:
            return None
        resolved, first = found
        schema = _schema(first, resolved, feature_types, file.path)
    except BaseException as error:
        raise_failure(error, file, extraction.function)
    if resolved is extraction:
        return resolved, schema
    # Names of columns, where each is one number: of lists nobody can tell which is which.
    columns = feature_columns(resolved.declared)
    arrays = (
        replace(spec, columns=names) if len(names := columns.get(spec.name, ())) == spec.width else spec
        for spec in schema.arrays
    )
    return resolved, StoreSchema(tuple(arrays), schema.names)


def feature_columns(declared: SampleSchema) -> dict[str, tuple[str, ...]]:
    """The columns of each array of features, where files are read by columns that are known by now.

    >>> feature_columns(SampleSchema(feature_columns=["gold", "wood", "age"], feature_groups={"wealth": 2}))
    {'strategic_features_wealth': ('gold', 'wood'), 'strategic_features': ('age',)}
    """
    others = tuple(declared.feature_columns)
    found: dict[str, tuple[str, ...]] = {}
    for group, features in declared.feature_groups.items():
        if isinstance(features, int):
            found[declared.group_array(group)], others = others[:features], others[features:]
        else:
            found[declared.group_array(group)] = tuple(features)
    return found | {declared.features_name: others}


def _schema(first: Item, extraction: Extraction, feature_types: Mapping[str, str], file: str) -> StoreSchema:
    names, declared = extraction.names, extraction.declared
    mask_dtype = np.dtype(declared.mask_dtype)
    if isinstance(first, Arrays):
        specs = []
        for name, array in first.values.items():
            dtype = array.dtype
            if name in feature_types:
                dtype = np.dtype(feature_types[name])
            elif name.startswith(names.labels):
                dtype = label_type(array[:1])  # as samples do that come one by one
            elif name.startswith(names.masks):
                dtype = mask_dtype
            specs.append(ArraySpec.of_shape(name, dtype, array.shape, file))
    else:
        specs = _sample_specs(first, extraction, feature_types, file)
    # Heads that are declared but not in the first sample: that it lacks them is reported with its position.
    labels = [ArraySpec(names.label(head), np.dtype(kind)) for head, kind in declared.labels.items()]
    masks = [ArraySpec(names.mask(head), mask_dtype, width) for head, width in declared.masks.items()]
    present = {spec.name for spec in specs}
    specs += [spec for spec in (*labels, *masks) if spec.name not in present]
    if extraction.group_key is not None:
        specs = [spec for spec in specs if spec.name != names.groups]
        specs.append(ArraySpec(names.groups, np.dtype(np.uint64)))
    return StoreSchema(tuple(_as_declared(spec, names, declared) for spec in specs), names)


def _sample_specs(
    first: Sample, extraction: Extraction, feature_types: Mapping[str, str], file: str
) -> list[ArraySpec]:
    names, declared = extraction.names, extraction.declared
    groups = [
        ArraySpec.of_shape(array, np.dtype(feature_types[array]), (1, *np.shape(first[array])), file)
        for array in map(declared.group_array, declared.feature_groups)
        if array in first
    ]
    all_grouped = bool(groups) and FEATURES not in first
    features, *heads = inferred_schema(
        {**first, FEATURES: ()} if all_grouped else first,
        names=names,
        feature_dtype=feature_types[names.features],
        mask_dtype=declared.mask_dtype,
        file=file,
    ).arrays
    return [*([] if all_grouped else [features]), *groups, *heads]


def _as_declared(spec: ArraySpec, names: ArrayNames, declared: SampleSchema) -> ArraySpec:
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
