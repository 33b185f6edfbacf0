"""What each column of a table can be to a model, found from a look at its rows: label, id, number, time, or nothing."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, hint
from penstock.prep.data_advice import is_id_name, is_label, is_time
from penstock.prep.profile import ColumnFacts, DataProfile, is_moment, is_number, is_text
from penstock.prep.statistics import quantile_boundaries
from penstock.readers.columns import is_list

Numbers = NDArray[np.float64]

_LABEL_NAMES = ("label", "target", "y", "click", "clicked", "is_click")
"""The most usual names, the surest first."""
_CODE_NAME = re.compile(
    r"(^|_)(code|zip|zipcode|postcode|type|kind|category|cat|brand|city|region|state|country|user|item|product|"
    r"movie|video|campaign|ad|site|app|channel|device)$",
    re.IGNORECASE,
)
_OUTCOME_NAME = re.compile(
    r"(stay|dwell|play|watch|view|reading)_?(time|seconds|ms|duration|rate)|long_view|completion",
    re.IGNORECASE,
)
"""What is measured after a row was shown."""
_ISO_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?")
_SEPARATORS = ("\x1d", "\x03", "|", ";", ",", " ")
_JOINED_PART, _TOKENS_PART = 0.1, 0.7
"""A string holds several values where so many hold the separator, and there are so many fewer tokens than strings."""
_MANY_ROWS, _DISTINCT_PART = 1000, 0.9
_TELLING_AUC, _PURE_PART, _PURER, _MIN_BIN_ROWS = 0.9, 0.4, 0.05, 50
"""A column tells the label where it ranks rows this well, or where so large a part of the rows of one class stands
beside values that hardly any row of the other has: so many times fewer than by chance, in so many rows at least."""
_BINS = 32
_DAY_SECONDS = 86_400
_FIRST_DAY, _LAST_DAY = 19_000_101, 21_001_231


class Role(StrEnum):
    LABEL = "label"
    ID = "id"
    VALUES = "values"
    """Several ids in a row."""
    NUMBER = "number"
    VECTOR = "vector"
    TIME = "time"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class ColumnRole:
    name: str
    role: Role
    why: str
    """For a comment."""
    distinct: int = 0
    """Values of all rows, estimated where only some rows were looked at."""
    words: tuple[str, ...] = ()
    """All strings that were seen, the most frequent first, where they are few."""
    separator: str = ""
    weighted: bool = False
    sample: Numbers = field(default_factory=lambda: np.zeros(0))
    """Of numbers, sorted; of times, seconds since 1970."""
    has_missing: bool = False
    formula: str = ""
    """Of a time, as expr_feature takes it."""
    is_day: bool = False
    """Of a time, whether it has no hour."""
    width: int = 1


def find_label(profile: DataProfile, given: str | None) -> ColumnFacts:
    """The column that `given` names, or the one that most looks like a label."""
    columns = {column.name: column for column in profile.columns}
    if given is not None:
        if given not in columns:
            raise ConfigError(f"--label: there is no column '{given}'; {hint(given, columns)}")
        return columns[given]
    usable = [column for column in profile.columns if column.distinct == 2 or is_label(column)]
    by_name = [columns[name] for name in _LABEL_NAMES if name in columns and columns[name] in usable]
    found = by_name or [column for column in usable if is_label(column)]
    if not found and usable and usable[-1] is profile.columns[-1]:
        found = [usable[-1]]
    if not found:
        shown = ", ".join(list(columns)[:12]) + (", ..." if len(columns) > 12 else "")
        raise ConfigError(f"no column looks like a label of 0 and 1; give --label NAME, one of {shown}")
    return found[0]


def roles_of(
    profile: DataProfile, rows: pa.Table, label: str, outcomes: NDArray[np.float64], codes: Sequence[str] = ()
) -> list[ColumnRole]:
    """The role of every column, in their order. `rows` are some rows, `outcomes` their labels as numbers.

    `codes` are columns of digits that are no numbers, such as 02134.
    """
    scale = profile.num_rows / max(1, profile.num_seen)
    return [
        ColumnRole(label, Role.LABEL, "") if column.name == label
        else _role(column, rows[column.name], outcomes, scale, column.name in codes)
        for column in profile.columns
    ]  # fmt: skip


def _role(column: ColumnFacts, rows: Any, outcomes: Numbers, scale: float, is_code: bool) -> ColumnRole:
    name, kind = column.name, column.type
    kind = kind.value_type if pt.is_dictionary(kind) else kind

    def left_out(why: str) -> ColumnRole:
        return ColumnRole(name, Role.LEFT_OUT, why)

    num_values = column.num_rows - column.num_nulls - column.num_nan - column.num_empty
    has_missing = num_values < column.num_rows
    distinct = _estimated(column.distinct, num_values, scale)
    if not num_values or column.distinct + has_missing <= 1:
        return left_out("has one value in all rows" if num_values else "has no value")
    if is_label(column) or _OUTCOME_NAME.search(name):
        return left_out("looks like another outcome of the same row")
    values = rows.combine_chunks()
    values = values.dictionary_decode() if pt.is_dictionary(values.type) else values
    if pt.is_map(kind) and is_number(kind.item_type):
        return ColumnRole(name, Role.VALUES, "keys with weights", distinct, weighted=True)
    if is_list(kind):
        return _list_role(column, distinct, has_missing)
    if not (is_number(kind) or is_text(kind) or pt.is_decimal(kind)):
        return left_out(f"is a {kind}")
    numbers = _numbers(values, column)
    if why := _tells_label(values, numbers, outcomes):
        return left_out(why)
    time = _time_role(column, values, numbers, has_missing)
    if time is not None:
        return time
    is_row_key = num_values >= _MANY_ROWS and column.distinct >= _DISTINCT_PART * num_values
    is_code = is_code or is_id_name(name) or bool(_CODE_NAME.search(name))
    if numbers is not None and (pt.is_floating(kind) or not is_code):
        finite = np.sort(numbers[np.isfinite(numbers)])
        return ColumnRole(name, Role.NUMBER, "", distinct, sample=finite, has_missing=has_missing)
    if is_text(kind) and not is_id_name(name) and (joined := _joined(values, name)):
        return joined
    if is_row_key:
        return left_out(f"{column.distinct:,} of {num_values:,} values are distinct")
    return ColumnRole(name, Role.ID, "", distinct, _words(values), has_missing=has_missing)


def _estimated(distinct: int, num_values: int, scale: float) -> int:
    """Where most rows that were looked at have a value of their own, those that were not have others."""
    return round(distinct * scale) if distinct > 0.3 * num_values else distinct


def _list_role(column: ColumnFacts, distinct: int, has_missing: bool) -> ColumnRole:
    item = column.type.value_type
    item = item.value_type if pt.is_dictionary(item) else item
    if is_text(item) or pt.is_integer(item):
        return ColumnRole(column.name, Role.VALUES, "a list", distinct)
    shortest, longest = column.length_range or (0, 0)
    if pt.is_floating(item) and 0 < shortest == longest and not has_missing and not column.num_nan:
        return ColumnRole(column.name, Role.VECTOR, f"{longest} numbers in every row", width=longest)
    return ColumnRole(column.name, Role.LEFT_OUT, f"is a {column.type} of different lengths, or with gaps")


def _numbers(values: Any, column: ColumnFacts) -> Numbers | None:
    """The values as numbers, NaN where there is none; None where they are no numbers."""
    if is_text(values.type):
        if not column.is_number_text:
            return None
        values = pc.if_else(pc.equal(values, pa.scalar("")), None, values).cast(pa.string())
    if pt.is_boolean(values.type):
        values = values.cast(pa.int8())
    elif is_moment(values.type):
        values = values.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    elif pt.is_floating(values.type):
        values = values.cast(pa.float64())
    return np.asarray(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)


def _tells_label(values: Any, numbers: Numbers | None, outcomes: Numbers) -> str:
    """Why a column must be known only once the label is; "": it need not be."""
    base = float(outcomes.mean()) if len(outcomes) else 0.0
    if not set(np.unique(outcomes)) <= {0.0, 1.0} or not 0 < base < 1 or len(outcomes) != len(values):
        return ""
    if numbers is not None:
        present = np.isfinite(numbers)
        auc = _rank_auc(numbers[present], outcomes[present])
        if max(auc, 1 - auc) >= _TELLING_AUC:
            return f"alone it ranks rows by the label with an AUC of {max(auc, 1 - auc):.3f}; it may come after it"
        bins = np.searchsorted(quantile_boundaries(np.sort(numbers[present]), _BINS), numbers, side="right")
    else:
        bins = pc.dictionary_encode(values, null_encoding="encode").indices.to_numpy(zero_copy_only=False)
    totals = np.bincount(bins)
    ones = np.bincount(bins, outcomes, minlength=len(totals))
    for of_class, part in ((ones, base), (totals - ones, 1 - base)):
        pure = (totals >= _MIN_BIN_ROWS) & (totals - of_class <= _PURER * (1 - part) * totals)
        covered = float(of_class[pure].sum() / of_class.sum())
        if covered >= _PURE_PART:
            return f"some of its values stand almost only beside one label, {covered:.0%} of all; it may come after it"
    return ""


def _rank_auc(scores: Numbers, outcomes: Numbers) -> float:
    _, inverse, counts = np.unique(scores, return_inverse=True, return_counts=True)
    num_ones = float(outcomes.sum())
    if not 0 < num_ones < len(outcomes):
        return 0.5
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    rank_sum = float(mean_ranks[inverse][outcomes == 1].sum())
    return (rank_sum - num_ones * (num_ones + 1) / 2) / (num_ones * (len(outcomes) - num_ones))


def _time_role(
    column: ColumnFacts, values: Any, numbers: Numbers | None, has_missing: bool
) -> ColumnRole | None:
    """A time by its type, by what its strings look like, or by its name and size."""
    name, kind = column.name, values.type
    if is_text(kind):
        texts = [text for text in pc.unique(values).slice(0, 1000).to_pylist() if text]
        if not texts or not all(_ISO_TIME.fullmatch(str(text).strip()) for text in texts):
            return None
        try:
            seconds = pc.strptime(pc.utf8_slice_codeunits(values, 0, 10), "%Y-%m-%d", "s", error_is_null=True)
        except pa.ArrowInvalid:
            return None
        numbers = np.asarray(seconds.drop_null().cast(pa.int64()).to_numpy(), np.float64)
        formula, is_day = name, all(len(str(text).strip()) == 10 for text in texts)
    elif is_moment(kind):
        formula, is_day = name, bool(pt.is_date32(kind))
    elif not is_time(column) or numbers is None:
        return None
    elif column.min_value >= _FIRST_DAY and column.max_value <= _LAST_DAY:
        return ColumnRole(name, Role.LEFT_OUT, "a day as one number, which later rows do not have")
    else:
        exponent = 0 if column.max_value < 1e11 else 3 if column.max_value < 1e14 else 6
        formula = {0: f"from_seconds({name})", 3: f"from_milliseconds({name})"}.get(
            exponent, f"from_milliseconds({name} / 1000)"
        )
        numbers, is_day = numbers / 10**exponent, False
    if not name.isidentifier():
        return ColumnRole(
            name, Role.LEFT_OUT, "a time, but a formula cannot name it; rename it to letters and _"
        )
    sample = np.sort(numbers[np.isfinite(numbers)]) if numbers is not None else np.zeros(0)
    return ColumnRole(
        name, Role.TIME, "a time", sample=sample, formula=formula, is_day=is_day, has_missing=has_missing
    )


def _joined(values: Any, name: str) -> ColumnRole | None:
    """Strings that hold several values: which separator stands between them, and whether these have weights."""
    strings = pc.unique(values.drop_null()).slice(0, 20_000)
    for separator in _SEPARATORS:
        holds = pc.match_substring(strings, separator)
        if pc.sum(holds).as_py() is None or pc.mean(holds).as_py() < _JOINED_PART:
            continue
        tokens = pc.split_pattern(strings, separator).flatten()
        tokens = tokens.filter(pc.not_equal(tokens, pa.scalar("")))
        weighted = bool(pc.all(pc.match_substring_regex(tokens, r"^.+:[0-9.eE+-]+$")).as_py())
        if weighted:
            tokens = pc.replace_substring_regex(tokens, r":[^:]*$", "")
        distinct = len(pc.unique(tokens))
        if distinct < _TOKENS_PART * len(strings):
            shown = {"\x1d": "\\x1d", "\x03": "\\x03", " ": "spaces"}.get(separator, f"'{separator}'")
            why = f"several values, {'with weights, ' if weighted else ''}{shown} between them"
            return ColumnRole(name, Role.VALUES, why, distinct, separator=separator, weighted=weighted)
    return None


_MAX_WORDS = 40


def _words(values: Any) -> tuple[str, ...]:
    """The strings of a column that has few, the most frequent first."""
    if not is_text(values.type):
        return ()
    counted: Any = pc.value_counts(values.filter(pc.not_equal(values, pa.scalar(""))).drop_null())
    if len(counted) > _MAX_WORDS:
        return ()
    pairs = sorted(
        zip(counted.field("values").to_pylist(), counted.field("counts").to_pylist(), strict=True),
        key=lambda pair: (-pair[1], str(pair[0])),
    )
    return tuple(str(value) for value, _ in pairs)
