"""Values that tell groups, in one form for all types: the text that a person would write for them.

Files of the same data write a match as 17, as 17.0 or as text, in whichever type their writer chose; workers see them
in another order each time. One group must not have several numbers for it, or it would be in several splits.
"""

import datetime
import math
import re
from decimal import Decimal
from typing import Any

import numpy as np

WHOLE_NUMBER = r"^(-?[0-9]+)\.0*$"
"""A whole number with a fraction, as pandas writes those of a column with a gap: the first group are its digits."""

_WHOLE_TEXT = re.compile(WHOLE_NUMBER.replace("$", r"\Z"))
_WHOLE_BYTES = re.compile(_WHOLE_TEXT.pattern.encode())
_DAYS = ("Y", "M", "W", "D")


class NoGroup(Exception):
    """A value that tells no group: why, and which of several it is."""

    def __init__(self, reason: str, index: int = 0) -> None:
        super().__init__(reason)
        self.reason, self.index = reason, index


def group_text(value: Any) -> str | bytes:
    """Whole numbers of any type are their digits, others as Python writes a float; other text and bytes are themselves.

    >>> [group_text(value) for value in (17, 17.0, "17.0", np.uint8(17), True, 0.5, "match-7")]
    ['17', '17', '17', '17', '1', '0.5', 'match-7']
    """
    if isinstance(value, str):
        return _WHOLE_TEXT.sub(r"\1", value)
    if isinstance(value, bytes):
        return _WHOLE_BYTES.sub(rb"\1", value)
    if isinstance(value, int | np.integer | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating | Decimal):
        return _number_text(value)
    if isinstance(value, np.datetime64):
        return group_text(plain_moments(value).item())
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).isoformat()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return group_text(value[()])
    raise NoGroup("is missing" if value is None else f"is of type {type(value).__name__}")


def plain_moments(moments: Any) -> Any:
    """NumPy's dates and times as days, or else in microseconds: as Python has them."""
    unit, _ = np.datetime_data(moments.dtype)
    return moments.astype("M8[D]" if unit in _DAYS else "M8[us]")


def _number_text(value: Any) -> str:
    if value != value:
        raise NoGroup("is NaN")
    if math.isfinite(value) and value == int(value):
        return str(int(value))
    return repr(float(value))
