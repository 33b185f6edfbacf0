"""What keeps samples together in splits, as one number for each sample: the hash of a string.

Files of the same data write a match as 17, as 17.0 or as text, in whichever type their writer chose; workers see them
in another order each time. One group must not have several numbers, or it would be in several splits: so a number, a
day and a text count as the string that a person would write for them. Columns and arrays are not looked at value by
value: those of whole numbers and strings as they are, others by their distinct values.
"""

import datetime
import functools
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.readers.hashes import Hashes, value_hashes

_WHOLE_NUMBER = r"^(-?[0-9]+)\.0*$"
"""With a fraction, as pandas writes whole numbers of a column with a gap: the first group are its digits."""
_WHOLE_TEXT = re.compile(_WHOLE_NUMBER.replace("$", r"\Z"))
_WHOLE_BYTES = re.compile(_WHOLE_TEXT.pattern.encode())


class _NoGroup(Exception):
    """A value without a group: why, and which of several it is."""

    def __init__(self, reason: str, index: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.index = reason, index


def sample_group(sample: Mapping[str, Any], key: str, file: str, number: int) -> int:
    if key not in sample:
        raise DataError(f"{file}: sample {number}: {_missing(key)}")
    try:
        return _text_number(group_text(sample[key]))
    except _NoGroup as error:
        raise _refusal(error, key, file, number) from None


def groups_of(values: Any, key: str, file: str, first_number: int) -> NDArray[np.uint64]:
    """The groups of many samples, in an Arrow or NumPy array or a list; None where there are none under the key."""
    if values is None:
        raise DataError(f"{file}: {_missing(key)}")
    try:
        if isinstance(values, pa.Array):
            return _of_column(values)
        if not isinstance(values, np.ndarray) or values.dtype.kind == "O":
            return _of_objects(values)
        if values.ndim != 1:
            raise _NoGroup(f"has {values.ndim} axes; give one value for each sample")
        if values.dtype.kind not in "biufSU":
            raise _NoGroup(f"holds {values.dtype}")
        return _of_column(pa.array(values.astype(np.float64) if values.dtype.kind == "f" else values))
    except _NoGroup as error:
        raise _refusal(error, key, file, first_number) from None


def _missing(key: str) -> str:
    return f"has no '{key}', which preprocessing.splits.group_key names"


def _refusal(error: _NoGroup, key: str, file: str, first_number: int) -> DataError:
    return DataError(
        f"{file}: sample {first_number + error.index}: '{key}' {error.reason}; a group is told by a number or a text"
    )


@functools.lru_cache(maxsize=4096)
def _text_number(text: str | bytes) -> int:
    try:
        return int(value_hashes(pa.array([text]))[0])
    except UnicodeEncodeError:
        raise _NoGroup("is text that has no UTF-8 form") from None


def group_text(value: Any) -> str | bytes:
    """Whole numbers of any type are their digits, others as Python writes a float; other text and bytes are themselves.

    >>> [group_text(value) for value in (17, 17.0, "17.0", np.uint8(17), True, 0.5, "match-7")]
    ['17', '17', '17', '17', '1', '0.5', 'match-7']
    """
    if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 and value.dtype.kind in "biufSU":
        value = value.item()
    if isinstance(value, str):
        return _WHOLE_TEXT.sub(r"\1", value)
    if isinstance(value, bytes):
        return _WHOLE_BYTES.sub(rb"\1", value)
    if isinstance(value, float):
        if value != value:
            raise _NoGroup("is NaN")
        is_whole = math.isfinite(value) and value == int(value)
        return str(int(value)) if is_whole else repr(value)
    if isinstance(value, int):
        return str(int(value))
    if type(value) is datetime.date:
        return value.isoformat()
    raise _NoGroup("is missing" if value is None else f"is of type {type(value).__name__}")


def _of_objects(values: Any) -> Hashes:
    """Python's values: strings together, others one by one."""
    try:
        return _of_column(pa.array(values, pa.string()))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, UnicodeEncodeError):  # not all of them are strings
        hashes = np.empty(len(values), np.uint64)
    for index, value in enumerate(values):
        try:
            hashes[index] = _text_number(group_text(value))
        except _NoGroup as error:
            raise _NoGroup(error.reason, index) from None
    return hashes


def _of_column(values: Any) -> Hashes:
    types, kind = pa.types, values.type
    if values.null_count:
        raise _NoGroup("is missing", pc.index(values.is_null(), True).as_py())
    if types.is_dictionary(kind):
        return _of_column(values.dictionary_decode())
    if types.is_boolean(kind):
        return _of_column(values.cast(pa.uint8()))
    if types.is_integer(kind) or types.is_date(kind):
        return value_hashes(values.cast(pa.string()))
    if types.is_string_view(kind) or types.is_binary_view(kind) or types.is_fixed_size_binary(kind):
        return _of_column(values.cast(pa.large_binary()))
    if kind in (pa.binary(), pa.string(), pa.large_binary(), pa.large_string()):
        return value_hashes(pc.replace_substring_regex(values, _WHOLE_NUMBER, r"\1"))
    if not types.is_floating(kind):
        raise _NoGroup(f"holds {kind}")
    values = values.cast(pa.float64())
    missing = pc.index(pc.is_nan(values), True).as_py()
    if missing >= 0:
        raise _NoGroup("is NaN", missing)
    try:
        return _of_column(values.cast(pa.int64()))
    except pa.ArrowInvalid:  # not all of them are whole
        distinct = values.dictionary_encode()
    texts = [group_text(value) for value in distinct.dictionary.to_pylist()]
    hashes: Hashes = value_hashes(pa.array(texts, pa.string()))[distinct.indices.to_numpy()]
    return hashes
