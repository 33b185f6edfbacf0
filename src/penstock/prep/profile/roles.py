"""What a column probably is, from its name, its type and its values."""

import re

import pyarrow.types as pt

from penstock.prep.profile.column import ColumnFacts, is_moment, is_text

_TIME_NAME = re.compile(
    r"(^|_)(time|timestamp|ts|date|datetime|dt|day)($|_)|(time|timestamp)$", re.IGNORECASE
)
_LABEL_NAME = re.compile(
    r"(^|_)(label|labels|target|y|click|clicked|buy|bought|purchase|conversion|converted|like|liked)$|^is_",
    re.IGNORECASE,
)
_ID_NAME = re.compile(r"(^|_)(id|uid|uuid|guid|key|hash)$|[a-z]I[dD]$", re.IGNORECASE)
_MANY_DISTINCT = 1000
_FIRST_SECOND = 10**8
"""1973, in seconds since 1970; in milliseconds and finer units, moments are larger still."""
_FIRST_DAY, _LAST_DAY = 19_000_101, 21_001_231
"""Days written as one number, such as 20240131."""


def is_time(column: ColumnFacts) -> bool:
    """A moment by its type, or a number that is called a time and can be one."""
    if is_moment(column.type):
        return True
    if not (pt.is_integer(column.type) or pt.is_floating(column.type)) or column.least is None:
        return False
    is_day = column.least >= _FIRST_DAY and column.most <= _LAST_DAY
    return bool(_TIME_NAME.search(column.name)) and (column.least >= _FIRST_SECOND or is_day)


def is_label(column: ColumnFacts) -> bool:
    """Called like a label, and 0 or 1."""
    is_binary = pt.is_boolean(column.type) or (
        (pt.is_integer(column.type) or pt.is_floating(column.type))
        and column.least is not None
        and column.least in (0, 1)
        and column.most in (0, 1)
        and column.distinct <= 2
    )
    return bool(_LABEL_NAME.search(column.name)) and is_binary


def is_id(column: ColumnFacts) -> bool:
    """Integers or texts that are called an id, or have many different values."""
    if not (pt.is_integer(column.type) or is_text(column.type)) or is_time(column):
        return False
    return bool(_ID_NAME.search(column.name)) or column.distinct >= _MANY_DISTINCT
