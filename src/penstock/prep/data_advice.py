"""What is wrong with a data set for training, and what to do about it: one line each.

What a column probably is follows from its name, its type and its values.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow.types as pt

from penstock.config.sizes import KIB, MIB, format_size
from penstock.prep.profile import ColumnFacts, DataProfile, is_moment, is_text

TINY_ROW_GROUP_BYTES, HUGE_ROW_GROUP_BYTES = 512 * KIB, 256 * MIB
_MANY_ROW_GROUPS, _MANY_FILES, _TINY_FILE_BYTES = 16, 32, MIB
_SKEWED_PART, _RARE_LABEL = 0.5, 0.01
_CLUSTERED_PART = 0.2
"""Labels that change so many times less often than in random order stand in runs."""
_SORTED_PART = 0.05
"""Of neighbours that differ, those against the order; between pieces that were looked at, there are some."""
MIN_ROWS = 64
"""Of fewer rows nothing is said about order and rates: it would be chance."""
_TIME_NAME = re.compile(
    r"(^|_)(time|timestamp|ts|date|datetime|dt|day)($|_)|(time|timestamp)$", re.IGNORECASE
)
_LABEL_NAME = re.compile(
    r"(^|_)(label|labels|target|y|click|clicked|buy|bought|purchase|conversion|converted|like|liked)$|^is_",
    re.IGNORECASE,
)
_ID_NAME = re.compile(r"(?i:(^|_)(id|uid|uuid|guid|key|hash)$)|[a-z]I[dD]$")
"""user_id and userId, but neither bid nor paid."""
_MANY_DISTINCT = 1000
_FIRST_SECOND = 10**8
"""1973, in seconds since 1970; in milliseconds and finer units, moments are larger still."""
_FIRST_DAY, _LAST_DAY = 19_000_101, 21_001_231
"""Days written as one number, such as 20240131."""


@dataclass(frozen=True, slots=True)
class Storage:
    path: str
    num_files: int
    bytes_on_disk: int
    row_group_rows: tuple[int, ...] = ()
    """Rows of each row group; empty for formats without."""
    parquet_part: float | None = None
    """What the data would take as Parquet, as a part of what it takes now; None: it is Parquet, or not known."""
    format_name: str = "Parquet"

    def rewrite(self, options: str = "") -> str:
        return f"penstock rewrite {self.path} NEW_FOLDER{options}"


def advise(profile: DataProfile, storage: Storage) -> list[str]:
    found = [*_storage(profile, storage)]
    for column in profile.columns:
        found += [*_order(column, storage), *_values(column)]
    return found


def _storage(profile: DataProfile, storage: Storage) -> Iterator[str]:
    sizes = [rows * profile.row_bytes for rows in storage.row_group_rows]
    huge = sum(size > HUGE_ROW_GROUP_BYTES for size in sizes)
    tiny = sum(size < TINY_ROW_GROUP_BYTES for size in sizes)
    if huge:
        yield (
            f"{huge:,} of {len(sizes):,} row groups take more than {format_size(HUGE_ROW_GROUP_BYTES)} in "
            f"memory: they are read in slices, which is slower; {storage.rewrite()}"
        )
    if tiny >= _MANY_ROW_GROUPS and tiny * 2 > len(sizes):
        yield (
            f"{tiny:,} of {len(sizes):,} row groups take less than {format_size(TINY_ROW_GROUP_BYTES)} in "
            f"memory: larger ones (16MiB to 64MiB) read faster; {storage.rewrite()}"
        )
    mean_bytes = storage.bytes_on_disk // max(1, storage.num_files)
    if storage.num_files >= _MANY_FILES and mean_bytes < _TINY_FILE_BYTES:
        yield (
            f"{storage.num_files:,} files of {format_size(mean_bytes)} on average: opening them costs more than "
            f"reading; {storage.rewrite()}"
        )
    if storage.parquet_part is not None and storage.parquet_part < 1 and storage.bytes_on_disk >= MIB:
        yield (
            f"{storage.format_name} would take about {storage.parquet_part:.0%} of the space as Parquet, and read "
            f"faster; {storage.rewrite()}"
        )


def _order(column: ColumnFacts, storage: Storage) -> Iterator[str]:
    num_changes = column.rises + column.falls
    num_neighbours = num_changes + column.ties
    if num_neighbours < MIN_ROWS:
        return
    shuffled = f"train with data_config.shuffle, or {storage.rewrite(' --shuffle')}"
    if is_time(column):
        if column.rises and not column.falls:
            yield f"{column.name}: rows are sorted by time, so that batches are of one moment each; {shuffled}"
        elif column.falls:
            part = column.falls / num_changes
            yield (
                f"{column.name}: looks like a time but does not ascend with the rows ({part:.0%} of the "
                "steps go back): the last rows are not the newest; to hold out the newest, choose them by value"
            )
    elif is_label(column) and stands_together(column):
        yield f"{column.name}: equal labels stand together, so that batches are of one kind; {shuffled}"


def _values(column: ColumnFacts) -> Iterator[str]:
    num_values = column.num_rows - column.num_nulls
    if column.num_rows and not num_values:
        yield f"{column.name}: has no value in any row that was looked at; leave it out"
    if column.num_nan:
        yield f"{column.name}: {column.num_nan:,} values are NaN; write null where a value is missing"
    if column.is_number_text and is_text(column.type):
        yield f"{column.name}: all strings are numbers; as numbers they take less space and no parsing"
    if num_values < MIN_ROWS:
        return
    if is_label(column) and column.mean is not None:
        rate = column.mean
        if rate in (0.0, 1.0):
            yield f"{column.name}: all labels are {rate:.0f}; there is nothing to learn"
        elif not _RARE_LABEL <= rate <= 1 - _RARE_LABEL:
            yield (
                f"{column.name}: the base rate is {rate:.4%}; AUC will be noisy and log loss small: weigh or sample "
                "the frequent class"
            )
    elif column.top is not None and is_id(column) and column.top[1] > _SKEWED_PART and column.distinct > 1:
        value, part = column.top
        shown = repr(value) if isinstance(value, str | bytes) else str(value)
        yield (
            f"{column.name}: {shown} stands in {part:.0%} of the rows; if it means that the id is "
            "missing, write null"
        )


def stands_together(column: ColumnFacts) -> bool:
    """Whether neighbours differ far less often than in random order."""
    num_neighbours = column.rises + column.falls + column.ties
    return num_neighbours >= MIN_ROWS and 1 - column.tie_rate < _CLUSTERED_PART * (1 - column.tie_chance)


def is_sorted(column: ColumnFacts) -> bool:
    """Whether values ascend, or descend, with the rows; those of a random order go up as often as down."""
    num_changes = column.rises + column.falls
    return num_changes >= MIN_ROWS and min(column.rises, column.falls) < _SORTED_PART * num_changes


def is_time(column: ColumnFacts) -> bool:
    """A moment by its type, or a number that is called a time and can be one."""
    if is_moment(column.type):
        return True
    if not (pt.is_integer(column.type) or pt.is_floating(column.type)) or column.min_value is None:
        return False
    is_day = column.min_value >= _FIRST_DAY and column.max_value <= _LAST_DAY
    return bool(_TIME_NAME.search(column.name)) and (column.min_value >= _FIRST_SECOND or is_day)


def is_label(column: ColumnFacts) -> bool:
    """Called like a label, and 0 or 1."""
    is_number = pt.is_integer(column.type) or pt.is_floating(column.type)
    has_two = {column.min_value, column.max_value} <= {0, 1} and column.distinct <= 2
    return bool(_LABEL_NAME.search(column.name)) and (pt.is_boolean(column.type) or (is_number and has_two))


def is_id(column: ColumnFacts) -> bool:
    """Integers or texts that are called an id, or have many different values."""
    if not (pt.is_integer(column.type) or is_text(column.type)) or is_time(column):
        return False
    return is_id_name(column.name) or column.distinct >= _MANY_DISTINCT


def is_id_name(name: str) -> bool:
    return bool(_ID_NAME.search(name))
