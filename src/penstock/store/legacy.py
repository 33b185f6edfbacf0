"""Old batch files: lists of samples, pickled, as `.npz` or `.npy` of objects or as `.pkl`.

They are recognised without unpickling anything, and converted only when that is asked for, by `plain_pickle`, which
runs nothing of a file.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.store.inference import inferred_schema
from penstock.store.legacy_archive import check_lengths, read_archive
from penstock.store.npy_header import read_npy_header
from penstock.store.plain_pickle.reading import read_plain_pickle
from penstock.store.plain_pickle.values import shown
from penstock.store.samples import samples_to_arrays
from penstock.store.schema import FEATURES, LABELS, MASKS, ArrayNames, StoreSchema

NPY_MAGIC = b"\x93NUMPY"
_PICKLE_START = b"\x80"
PICKLE_SUFFIXES = (".pkl", ".pickle")


def holds_pickle(path: Path, beginning: bytes) -> bool:
    """Whether a file that is no `.npz` is a pickle, or a `.npy` file of objects."""
    if beginning.startswith(NPY_MAGIC):
        with path.open("rb") as stream:
            return read_npy_header(stream, str(path)).dtype.hasobject
    return beginning.startswith(_PICKLE_START) or (bool(beginning) and path.suffix in PICKLE_SUFFIXES)


def refuse_pickle(path: Path) -> DataError:
    """What to say of an old file when nobody allowed to unpickle it."""
    return DataError(
        f"{path}: holds pickled samples, as batch files of old do; they are converted where you allow it, and nothing "
        "of the file is run: allow_pickle=True, or --allow-pickle"
    )


def load_legacy(path: Path, schema: StoreSchema | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an old batch file; without a schema that of its first sample holds."""
    samples = _load_samples(path, schema.names if schema else ArrayNames())
    return samples_to_arrays(samples, schema, file=str(path))


def legacy_schema(path: Path, names: ArrayNames | None = None) -> StoreSchema:
    """What the first sample of an old batch file says of the arrays that they all become."""
    names = names or ArrayNames()
    samples = _load_samples(path, names)
    if not samples:
        raise DataError(
            f"{path}: holds no samples, so that nothing tells their heads and widths; take it away"
        )
    return inferred_schema(samples[0], names=names, file=str(path))


def _load_samples(path: Path, names: ArrayNames) -> list[Any]:
    return [_sample(item, names) for item in _samples(path, _content(path))]


def _content(path: Path) -> Any:
    try:
        with path.open("rb") as stream:
            return _unpickled(path, stream)
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror or error}") from error
    except MemoryError as error:
        raise DataError(f"{path}: needs more memory than there is; write it in parts") from error


def _unpickled(path: Path, stream: IO[bytes]) -> Any:
    beginning = stream.read(len(NPY_MAGIC))
    stream.seek(0)
    if beginning.startswith(b"PK"):
        return read_archive(path, stream)
    if beginning.startswith(NPY_MAGIC):
        read_npy_header(stream, str(path))
    return read_plain_pickle(stream, str(path))


def _samples(path: Path, content: Any) -> Iterable[Any]:
    """The samples in what a file holds: a list, an array of objects, one of these by a name, or parts side by side."""
    if isinstance(content, np.ndarray) and content.ndim == 0:
        content = content.item()
    if isinstance(content, np.ndarray) and content.ndim == 1:
        return list(content)
    if isinstance(content, list | tuple):
        return content
    if isinstance(content, Mapping) and len(content) == 1:
        return _samples(path, next(iter(content.values())))
    if isinstance(content, Mapping) and FEATURES in content:
        return _side_by_side(path, content)
    raise DataError(
        f"{path}: holds no list of samples but {_described(content)}; "
        "a sample is a dict with features, labels by head, and masks by head"
    )


def _side_by_side(path: Path, parts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    check_lengths(path, parts)
    columns = [part.tolist() if _has_objects(part) else part for part in parts.values()]
    for values in zip(*columns, strict=True):
        yield dict(zip(parts, values, strict=True))


def _has_objects(part: Any) -> bool:
    return isinstance(part, np.ndarray) and part.dtype.hasobject


def _sample(item: Any, names: ArrayNames) -> Any:
    """A sample as it is today: heads may have stood side by side with the features, under the names of arrays."""
    if not isinstance(item, Mapping):
        return item
    sample: dict[str, Any] = {}
    beside: dict[str, dict[str, Any]] = {LABELS: {}, MASKS: {}}
    for key, value in item.items():
        is_array = isinstance(key, str) and key not in (FEATURES, LABELS, MASKS)
        part, head = names.place(key) if is_array else (key, None)
        if head is None:
            sample[part] = value
        else:
            beside[part][head] = value
    for part, heads in beside.items():
        own = sample.get(part)
        if own is None or isinstance(own, Mapping):
            sample[part] = {**(own or {}), **heads} if heads else own or {}
    return sample


def _described(content: Any) -> str:
    if isinstance(content, Mapping):
        return f"a dict of {shown(', '.join(map(str, list(content)[:5]))) or 'nothing'}"
    return f"a {type(content).__name__}"
