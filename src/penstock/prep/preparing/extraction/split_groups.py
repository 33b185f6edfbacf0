"""What keeps samples together in splits, as one number for each sample: the hash of a text (see `group_texts`).

It depends on the value alone, in every process. Columns and arrays are not looked at value by value: those of whole
numbers and texts as they are, others by their distinct values.
"""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.features.hashes import Hashes, value_hashes
from penstock.prep.preparing.extraction.group_texts import WHOLE_NUMBER, NoGroup, group_text, plain_moments

_MOST_WHOLE = 2.0**63
"""Below it, whole floats have a place in int64."""
_ADVICE = "a group is told by a number or a text"
_NO_TEXT = (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, UnicodeEncodeError)
"""What Arrow raises of a list that holds something else than texts."""


def sample_group(sample: Mapping[str, Any], key: str, file: str, number: int) -> int:
    """The number of one sample's group."""
    if key not in sample:
        raise DataError(f"{file}: sample {number}: {_missing(key)}")
    try:
        return group_number(sample[key])
    except NoGroup as error:
        raise _refusal(error, key, file, number) from None


def groups_of(values: Any, key: str, file: str, first_number: int) -> NDArray[np.uint64]:
    """The numbers of the groups of many samples, in an Arrow or NumPy array or a list.

    `values` is None where there are none under the key.
    """
    if values is None:
        raise DataError(f"{file}: {_missing(key)}")
    try:
        if isinstance(values, pa.Array):
            return _of_column(values)
        return _of_array(values) if isinstance(values, np.ndarray) else _of_objects(values)
    except NoGroup as error:
        raise _refusal(error, key, file, first_number) from None


def group_number(value: Any) -> int:
    """That of one value."""
    return _text_number(group_text(value))


@functools.lru_cache(maxsize=4096)
def _text_number(text: str | bytes) -> int:
    """Texts come again and again."""
    try:
        return int(value_hashes(pa.array([text]))[0])
    except UnicodeEncodeError:
        raise NoGroup("is text that has no UTF-8 form") from None


def _of_array(values: NDArray[Any]) -> Hashes:
    if values.ndim != 1:
        raise NoGroup(f"has {values.ndim} axes; give one value for each sample")
    kind = values.dtype.kind
    if kind == "O":
        return _of_objects(values)
    if kind == "f":
        return _of_floats(values)
    if kind not in "biuSUM":
        raise NoGroup(f"holds {values.dtype}")
    return _of_column(pa.array(plain_moments(values) if kind == "M" else values))


def _of_objects(values: Sequence[Any] | NDArray[Any]) -> Hashes:
    """Python's values: texts together, others one by one."""
    try:
        return _of_column(pa.array(values, pa.string()))
    except _NO_TEXT:
        hashes = np.empty(len(values), np.uint64)
    for index, value in enumerate(values):
        try:
            hashes[index] = group_number(value)
        except NoGroup as error:
            raise NoGroup(error.reason, index) from None
    return hashes


def _of_column(values: Any) -> Hashes:
    types, kind = pa.types, values.type
    if values.null_count:
        raise NoGroup("is missing", pc.index(values.is_null(), True).as_py())
    if types.is_dictionary(kind):
        return _of_column(values.dictionary_decode())
    if types.is_boolean(kind):
        return _of_column(values.cast(pa.uint8()))
    if types.is_integer(kind):
        return value_hashes(values.cast(pa.string()))
    if types.is_floating(kind):
        return _of_floats(values.to_numpy(zero_copy_only=False))
    if types.is_string_view(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return _of_column(values.cast(pa.large_binary()))
    if types.is_binary(kind) or types.is_string(kind) or _is_long(kind):
        return value_hashes(pc.replace_substring_regex(values, WHOLE_NUMBER, r"\1"))
    if types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", None if kind.tz is None else "UTC"), safe=False)
    elif not types.is_decimal(kind) and not types.is_date(kind):
        raise NoGroup(f"holds {kind}")
    distinct = values.dictionary_encode()
    return _of_distinct(distinct.dictionary.to_pylist(), distinct.indices.to_numpy())


def _of_floats(values: NDArray[Any]) -> Hashes:
    values = values.astype(np.float64, copy=False)
    missing = np.isnan(values)
    if missing.any():
        raise NoGroup("is NaN", int(np.argmax(missing)))
    hashes = np.empty(len(values), np.uint64)
    is_whole = (np.trunc(values) == values) & (np.abs(values) < _MOST_WHOLE)
    hashes[is_whole] = _of_column(pa.array(values[is_whole].astype(np.int64)))
    fractions, indices = np.unique(values[~is_whole], return_inverse=True)
    hashes[~is_whole] = _of_distinct(fractions.tolist(), indices)
    return hashes


def _of_distinct(values: Sequence[Any], indices: NDArray[Any]) -> Hashes:
    """`values[indices]`, where few values come again and again."""
    hashes: Hashes = value_hashes(pa.array([group_text(value) for value in values], pa.string()))[indices]
    return hashes


def _is_long(kind: Any) -> bool:
    return bool(pa.types.is_large_binary(kind) or pa.types.is_large_string(kind))


def _refusal(error: NoGroup, key: str, file: str, first_number: int) -> DataError:
    return DataError(f"{file}: sample {first_number + error.index}: '{key}' {error.reason}; {_ADVICE}")


def _missing(key: str) -> str:
    return f"has no '{key}', which preprocessing.splits.group_key names"
