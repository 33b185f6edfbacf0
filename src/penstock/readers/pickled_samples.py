"""Old batch files: lists of samples, pickled, as `.npz` or `.npy` of objects or as `.pkl`.

They are recognised without unpickling anything, and converted only when that is allowed. A fresh process does it, with
an unpickler that finds plain constructors alone and with limits on its memory and time: a file that asks for more ends
that process and becomes one line. Only arrays of numbers come back.
"""

import json
import math
import os
import pickle
import re
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Self

import numpy as np
from numpy.lib import format as npy_format
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.config.sizes import MIB, format_size
from penstock.readers.batch_layouts import read_npy_header, reading_archive
from penstock.readers.samples import inferred_schema, samples_to_arrays
from penstock.readers.store_schema import FEATURES, LABELS, MASKS, ArrayNames, StoreSchema

PICKLE_SUFFIXES = (".pkl", ".pickle")

_NPY_MAGIC = b"\x93NUMPY"
_PICKLE_START = b"\x80"
_PARTS, _ROWS = (FEATURES, LABELS, MASKS), (list, tuple, np.ndarray)
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_MIN_BYTES, _BYTES_PER_BYTE = 256 * MIB, 40
"""What the process may take beside its imports, small or large: a number of 2 to 9 bytes takes up to 32 in Python."""
_MIN_SECONDS, _SECONDS_PER_MIB = 20, 2
_MIN_MEMBER_BYTES, _MAX_BYTES_PER_BYTE = 64 * MIB, 100
"""What a member of an archive may unpack to: zeros can be a thousand times as long as what they are packed to."""
_MAX_SHOWN = 80
_PLAIN_TYPE = re.compile(r"[biuf]\d{1,2}|[SU]\d{1,6}|O8?|\?")


def holds_pickle(path: Path, beginning: bytes) -> bool:
    """Whether a file that is no `.npz` is a pickle, or a `.npy` file of objects."""
    if beginning.startswith(_NPY_MAGIC):
        with path.open("rb") as stream:
            return read_npy_header(stream, str(path)).dtype.hasobject
    return beginning.startswith(_PICKLE_START) or (bool(beginning) and path.suffix in PICKLE_SUFFIXES)


class PickledFile(DataError):
    """An old file, where unpickling is not allowed."""

    path: Path

    @classmethod
    def at_path(cls, path: Path) -> Self:
        error = cls(
            f"{path}: holds pickled samples, as batch files of old do; they are converted where you allow it, and "
            "nothing of the file is run: allow_pickle=True, or --allow-pickle"
        )
        error.path = path
        return error


def load_pickled(path: Path, schema: StoreSchema | None = None) -> dict[str, NDArray[Any]]:
    """The arrays of an old batch file; without a schema that of its first sample holds."""
    names = schema.names if schema else ArrayNames()
    return _converted(path, names, schema=schema.as_document() if schema else None)[1]


def pickled_schema(path: Path, names: ArrayNames | None = None) -> StoreSchema:
    return StoreSchema.from_document(_converted(path, names or ArrayNames(), only_schema=True)[0]["schema"])


def _converted(
    path: Path, names: ArrayNames, **wanted: Any
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Run `_serve` in a process of its own."""
    request = json.dumps({"path": str(path), "names": asdict(names), **wanted}).encode()
    environment = {**os.environ, **_ONE_THREAD, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            child.stdin.write(request)
            child.stdin.close()
            answer = json.loads(child.stdout.readline())
            arrays = {name: _received(child.stdout, dtype, shape) for name, dtype, shape in answer["arrays"]}
        except (ValueError, OSError, EOFError):
            child.kill()
            raise DataError(
                f"{path}: is no pickle of plain samples: it asks for more memory or time than its size may need, and "
                f"was stopped (code {child.wait()}); nothing of it was run. If it is not damaged, write it in parts"
            ) from None
        finally:
            child.kill()
    if "error" in answer:
        raise DataError(answer["error"])
    return answer, arrays


def _received(stream: IO[bytes], dtype: str, shape: list[int]) -> NDArray[Any]:
    array = np.empty(shape, np.dtype(dtype))
    if stream.readinto(array.reshape(-1).view(np.uint8).data) != array.nbytes:  # type: ignore[attr-defined]
        raise EOFError
    return array


def _serve() -> None:
    """In the fresh process: read a request, set limits, convert, answer."""
    request = json.load(sys.stdin)
    path, names = Path(request["path"]), ArrayNames(**request["names"])
    answer: dict[str, Any] = {"arrays": []}
    arrays: dict[str, NDArray[Any]] = {}
    limit = _set_limits(path)
    try:
        samples = [_sample(item, names) for item in _samples(path, _content(path), names)]
        if request.get("only_schema"):
            if not samples:
                raise DataError(
                    f"{path}: holds no samples, so that nothing tells their heads and widths; take it away"
                )
            answer["schema"] = inferred_schema(samples[0], names=names, file=str(path)).as_document()
        else:
            declared = request.get("schema")
            schema = StoreSchema.from_document(declared) if declared else None
            arrays = samples_to_arrays(samples, schema, file=str(path))
            answer["arrays"] = [(name, array.dtype.str, array.shape) for name, array in arrays.items()]
    except DataError as error:
        answer["error"] = str(error)
    except OSError as error:
        answer["error"] = f"{path}: cannot be read: {error.strerror or error}"
    except (MemoryError, RecursionError):
        answer["error"] = (
            f"{path}: needs more than {format_size(limit)} of memory, far more than its size; if it is not damaged, "
            "write it in parts"
        )
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
    for array in arrays.values():
        sys.stdout.buffer.write(array.reshape(-1).view(np.uint8).data)
    sys.stdout.buffer.flush()
    os._exit(0)  # what a bomb left behind takes long to let go


def _set_limits(path: Path) -> int:
    """Returns the bytes of memory that the conversion may take."""
    num_bytes = 0
    with suppress(OSError, zipfile.BadZipFile):  # reported when it is read
        num_bytes = path.stat().st_size
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                unpacked = sum(info.file_size for info in archive.infolist())
            num_bytes = min(unpacked, _MIN_MEMBER_BYTES + num_bytes * _MAX_BYTES_PER_BYTE)
    share = _MIN_BYTES + num_bytes * _BYTES_PER_BYTE
    seconds = _MIN_SECONDS + num_bytes * _SECONDS_PER_MIB // MIB
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    for what, value in (
        (resource.RLIMIT_AS, pages * resource.getpagesize() + share),
        (resource.RLIMIT_CPU, seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (value if hard < 0 else min(value, hard), hard))
    return share


class _NotPlain(Exception):
    pass


class _Unpickler(pickle.Unpickler):
    """Finds a few constructors, of which none does more than make a plain value."""

    def find_class(self, module: str, name: str) -> Any:
        module = "builtins" if module == "__builtin__" else module
        try:
            return _NAMES[module.replace("numpy.core.", "numpy._core."), name]
        except KeyError:
            raise _NotPlain(f"{module}.{name}") from None

    def persistent_load(self, pid: Any) -> Any:
        raise _NotPlain("an object of another file")


class _DType:
    """What a pickle says of a type. NumPy's own would believe any state: arrays of raw pointers, too."""

    def __init__(self, code: Any, *_: Any) -> None:
        if not isinstance(code, str) or not _PLAIN_TYPE.fullmatch(code):
            raise _NotPlain(
                f"an array of type '{code}'" if isinstance(code, str) else "an array without a type"
            )
        self.dtype = np.dtype(code)

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, order, *parts = state[:5]
        if any(part is not None for part in parts):
            raise _NotPlain("an array of named fields")
        if order in ("<", ">"):
            self.dtype = self.dtype.newbyteorder(order)


class _Array(np.ndarray[Any, Any]):
    """An array that checks its description; NumPy's own reads beyond a list that is too short."""

    def __setstate__(self, state: Any) -> None:
        version, shape, dtype, is_column_major, content = state
        if type(dtype) is not _DType or type(shape) is not tuple:
            raise _NotPlain("an array of an unknown type")
        is_fitting = type(content) is (list if dtype.dtype.hasobject else bytes)
        if not is_fitting or (type(content) is list and len(content) != math.prod(shape)):
            raise _NotPlain("an array of values of another type")
        super().__setstate__((version, shape, dtype.dtype, bool(is_column_major), content))  # type: ignore[arg-type]


def _empty_array(*_: Any) -> Any:
    return np.ndarray.__new__(_Array, 0)  # its class, shape and type come again in its state


def _from_buffer(content: Any, dtype: Any, shape: Any, order: str, what: str = "an array") -> Any:
    if type(dtype) is not _DType or dtype.dtype.hasobject:
        raise _NotPlain(f"{what} of an unknown type")
    return np.frombuffer(content, dtype.dtype).reshape(shape, order="F" if order == "F" else "C")


def _scalar(dtype: Any, content: Any) -> Any:
    return _from_buffer(content, dtype, -1, "C", "a number")[0]


def _encode(text: str, encoding: str) -> bytes:
    if encoding != "latin1":
        raise _NotPlain(f"the encoding '{encoding}'")
    return text.encode("latin1")


_NAMES = {
    **{("builtins", kind.__name__): kind for kind in (set, frozenset, complex, bytes, bytearray)},
    ("collections", "OrderedDict"): dict,
    ("_codecs", "encode"): _encode,
    ("numpy", "dtype"): _DType,
    ("numpy", "ndarray"): _empty_array,
    ("numpy._core.multiarray", "_reconstruct"): _empty_array,
    ("numpy._core.multiarray", "scalar"): _scalar,
    ("numpy._core.numeric", "_frombuffer"): _from_buffer,
}


def _unpickled(stream: IO[bytes], label: str) -> Any:
    try:
        # Nothing but `_NAMES` can be called, in a process that holds nothing else and has limits.
        return _Unpickler(stream).load()
    except _NotPlain as error:
        raise DataError(
            f"{label}: its pickle asks for {_shown(error)}; only plain containers, numbers, text and NumPy arrays are "
            "read, and nothing of it was run"
        ) from None
    except (MemoryError, RecursionError):
        raise
    except Exception as error:
        is_torn = isinstance(error, LookupError | EOFError | pickle.UnpicklingError)
        reason = "it is cut short or damaged" if is_torn else _shown(str(error) or repr(error))
        raise DataError(f"{label}: is no whole pickle of plain data: {reason}") from error


def _content(path: Path) -> Any:
    with path.open("rb") as stream:
        beginning = stream.read(len(_NPY_MAGIC))
        stream.seek(0)
        if not beginning.startswith(b"PK"):
            if beginning.startswith(_NPY_MAGIC):
                read_npy_header(stream, str(path))
            return _unpickled(stream, str(path))
        found: dict[str, Any] = {}
        with reading_archive(str(path)), zipfile.ZipFile(stream) as archive:
            for info in archive.infolist():
                name = info.filename.removesuffix(".npy")
                label = f"{path}: array '{_shown(name)}'"
                if info.file_size > _MIN_MEMBER_BYTES + info.compress_size * _MAX_BYTES_PER_BYTE:
                    raise DataError(
                        f"{label} would unpack {info.compress_size} bytes to {info.file_size}; if it is not damaged, "
                        "write it with np.savez, which does not compress"
                    )
                with archive.open(info) as member:
                    if read_npy_header(member, label).dtype.hasobject:
                        found[name] = _unpickled(member, label)
                        continue
                with archive.open(info) as member:
                    found[name] = npy_format.read_array(member, allow_pickle=False)
        if len(found) > 1:
            _check_lengths(path, found)
        return found


def _check_lengths(path: Path, parts: Mapping[Any, Any]) -> None:
    lengths = {}
    for name, part in parts.items():
        shape = (len(part),) if isinstance(part, list | tuple) else getattr(part, "shape", ())
        if not shape:
            raise DataError(
                f"{path}: '{_shown(name)}' has no values, one for each sample; give a list or an array"
            )
        lengths[name] = int(shape[0])
    if len(set(lengths.values())) != 1:
        raise DataError(f"{path}: its parts have different numbers of samples: {_shown(lengths)}")


def _samples(path: Path, content: Any, names: ArrayNames) -> Iterable[Any]:
    """The samples in what a file holds: a list, an array of objects, one of these by a name, or parts side by side.

    Parts are the features, the labels and the masks of all samples, by name or as three lists.
    """
    if isinstance(content, np.ndarray) and content.ndim == 0:
        content = content.item()
    if isinstance(content, np.ndarray) and content.ndim == 1:
        return list(content)
    if isinstance(content, list | tuple):
        if len(content) != len(_PARTS) or not all(isinstance(part, _ROWS) for part in content):
            return content
        content = dict(zip(_PARTS, content, strict=True))
    if isinstance(content, Mapping) and len(content) == 1:
        return _samples(path, next(iter(content.values())), names)
    if isinstance(content, Mapping) and (FEATURES in content or names.features in content):
        _check_lengths(path, content)
        # The rows of an array of objects would be arrays of objects.
        columns = [
            part.tolist() if getattr(part, "dtype", None) == "O" else part for part in content.values()
        ]
        return [dict(zip(content, values, strict=True)) for values in zip(*columns, strict=True)]
    described = f"a {'NumPy array' if isinstance(content, np.ndarray) else type(content).__name__}"
    if isinstance(content, Mapping):
        described = f"a dict of {_shown(', '.join(map(str, list(content)[:5]))) or 'nothing'}"
    raise DataError(
        f"{path}: holds no list of samples but {described}; "
        "a sample is a dict with features, labels by head, and masks by head"
    )


def _sample(item: Any, names: ArrayNames) -> Any:
    """A sample as it is today: heads may have stood side by side with the features, under the names of arrays.

    So may values inside each part: `{"features": {"strategic_features": [...]}, "labels": {"labels_move": 3}}`.
    """
    if not isinstance(item, Mapping):
        return item
    if isinstance(features := item.get(FEATURES), Mapping):
        item = {**{key: value for key, value in item.items() if key != FEATURES}, **features}
    sample: dict[str, Any] = {}
    beside: dict[str, dict[str, Any]] = {LABELS: {}, MASKS: {}}
    for key, value in item.items():
        is_array = isinstance(key, str) and key not in (FEATURES, LABELS, MASKS)
        part, head = names.part_of(key) if is_array else (key, None)
        if head is None:
            sample[part] = value
        else:
            beside[part][head] = value
    for part, heads in beside.items():
        own = sample.get(part)
        if own is None or isinstance(own, Mapping):
            named = {(names.part_of(str(head))[1] or head): value for head, value in (own or {}).items()}
            sample[part] = {**named, **heads}
    return sample


def _shown(text: object) -> str:
    """Text of a file as it may stand in a message: on one line, without control characters, and short."""
    escaped = repr(str(text))[1:-1]
    return escaped if len(escaped) <= _MAX_SHOWN else f"{escaped[:_MAX_SHOWN]}..."


if __name__ == "__main__":
    _serve()
