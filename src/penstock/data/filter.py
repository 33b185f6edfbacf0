"""Rows that are left out before batches are cut: by a condition on their values, or because another part has them.

A row is consumed whether it passes or not. The rows that pass carry, in a column of their own, how many rows of the
source are consumed with each, so that a batch that is cut from them still knows its position.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.config.errors import ConfigError, DataError
from penstock.data.arguments import kind_of, name_of, require
from penstock.data.arrow_numpy import fill_nulls
from penstock.data.cut import CONSUMED_FIELD, Stage, split_rows
from penstock.readers.hashes import mixed, value_hashes
from penstock.readers.order import BoolArray
from penstock.readers.stream import ROW_COLUMN, RecordStream, file_and_row

_PIECE_ROWS = 16_384
"""So many rows are looked at, and copied where some are left out, at a time."""

Test: TypeAlias = "pc.Expression | Callable[[pa.RecordBatch], Any]"
"""What a row must pass: an expression such as `pc.field("age") > 30`, or a function from a record batch to a mask."""


@dataclass(frozen=True, slots=True)
class Passes:
    """A test that a Dataset was given, with the names and the fills that it had then."""

    test: Test
    names: Mapping[str, str]
    """The columns that the test sees: what it calls them, and what the source does."""
    fills: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.names.values())

    def __str__(self) -> str:
        return str(self.test) if isinstance(self.test, pc.Expression) else name_of(self.test)

    def mask(self, batch: pa.RecordBatch, file_paths: Sequence[str]) -> BoolArray:
        fills = {name: value for name, value in self.fills.items() if name in self.columns}
        seen = fill_nulls(batch.select(list(self.columns)), fills).rename_columns(list(self.names))
        try:
            found: Any
            found = _evaluated(self.test, seen) if isinstance(self.test, pc.Expression) else self.test(seen)
        except Exception as error:
            file, row = file_and_row(batch.column(ROW_COLUMN)[0].as_py(), file_paths)
            text = " ".join(str(error).split()) or "(without a text)"
            if isinstance(error, TypeError):
                text += "; columns are Arrow arrays: use pyarrow.compute, or their to_numpy()"
            raise DataError(
                f"filter: {self} failed for {batch.num_rows} rows that begin with row {row} of {file}: "
                f"{type(error).__name__}: {text}"
            ) from error
        if isinstance(found, pa.Array | pa.ChunkedArray) and pa.types.is_boolean(found.type):
            found = pc.fill_null(found, pa.scalar(False))
        mask = np.asarray(found)
        if mask.dtype != np.bool_ or mask.shape != (batch.num_rows,):
            gave = f"{mask.dtype} of shape {mask.shape}" if mask.ndim else kind_of(found)
            raise DataError(f"filter: {self} gave {gave} for {batch.num_rows} rows; give a bool for each row")
        return mask


def _evaluated(test: pc.Expression, batch: pa.RecordBatch) -> Any:
    # Imported here: it takes a while, and few filter. In one thread, which keeps the order of rows.
    from pyarrow import acero

    source = acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
    plan = [
        acero.Declaration("table_source", source),
        acero.Declaration("project", acero.ProjectNodeOptions([test], ["passes"])),
    ]
    return acero.Declaration.from_sequence(plan).to_table(use_threads=False)["passes"]


_MISSING_FIELD = re.compile(
    r"No match for (?:FieldRef\.Nested\()?FieldRef\.Name\((.*?)\)[ )].*in ", re.DOTALL
)


def passes(
    test: Any,
    names: Mapping[str, str],
    schema: pa.Schema,
    fills: Mapping[str, Any],
    unknown: Callable[..., Any],
) -> Passes:
    """A test, checked against the columns it may name; a function sees those that are given out, `names`.

    `schema` has the types of all columns of the source; `unknown` makes the error of a name that is not among them.
    """
    if not isinstance(test, pc.Expression):
        advice = "give an expression, such as pyarrow.compute.field('age') > 30, or a function"
        require(callable(test), "filter", f"is {kind_of(test)}; {advice}")
        return Passes(test, dict(names), fills)
    known = {name: name for name in schema.names} | dict(names)
    used: dict[str, str] = {}
    while True:  # an expression does not say which columns it reads, but which one it misses
        fields = [schema.field(source).with_name(name) for name, source in used.items()]
        try:
            kind = _evaluated(test, pa.RecordBatch.from_pylist([], pa.schema(fields))).type
        except pa.ArrowInvalid as error:
            missing = _MISSING_FIELD.match(str(error))
            if missing is None or missing[1] in used:
                raise ConfigError.at("filter", f"{test}: {error}") from error
            if missing[1] not in known:
                raise unknown(missing[1]) from error
            used[missing[1]] = known[missing[1]]
        except pa.ArrowException as error:
            raise ConfigError.at("filter", f"{test}: {error}") from error
        else:
            require(
                pa.types.is_boolean(kind),
                "filter",
                f"{test} is {kind}; give a condition that is true or false",
            )
            return Passes(test, used, fills)


@dataclass(frozen=True, slots=True)
class PartOf:
    """A part of the rows, drawn by a hash of the row's origin, or of a key: all rows of one key are in one part."""

    start: float
    end: float
    """Rows whose hash, as a number from 0 to 1, is from `start` on and below `end`."""
    key: str | None
    seed: int

    @property
    def columns(self) -> tuple[str, ...]:
        return () if self.key is None else (self.key,)

    def __str__(self) -> str:
        by = "" if self.key is None else f" by {self.key}"
        return f"the part from {self.start:g} to {self.end:g}{by}"

    def mask(self, batch: pa.RecordBatch, file_paths: Sequence[str]) -> BoolArray:
        keys: Any = batch.column(self.key or ROW_COLUMN)
        if self.key is not None and not pa.types.is_dictionary(keys.type):
            keys = pc.cast(keys, pa.large_string())  # so that 7 in one file is "7" or 7.0 in another
        hashes = mixed(value_hashes(keys) ^ mixed(np.array([self.seed % 2**64], np.uint64)))
        numbers = (hashes >> np.uint64(11)) * 2.0**-53
        return np.asarray((numbers >= self.start) & (numbers < self.end))


Condition: TypeAlias = Passes | PartOf
"""`columns` are those of the source that it reads, `mask` says which rows of a batch pass."""


class Filter(Stage):
    """The rows of the source that meet all conditions; a batch of which no row does is not given."""

    def __init__(self, source: RecordStream, conditions: Sequence[Condition]) -> None:
        super().__init__(source)
        self._conditions = conditions
        self.schema = source.schema.insert(len(source.schema) - 1, CONSUMED_FIELD)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        self._source.position = self.position
        for piece, _ in split_rows(self._source, _PIECE_ROWS):
            first_row = self.position.row
            self.position = self.position.at(first_row + piece.num_rows)
            consumed: Any = pa.array(np.arange(first_row + 1, self.position.row + 1))
            # Row ids stay last.
            rows = piece.add_column(piece.num_columns - 1, CONSUMED_FIELD, consumed)
            for condition in self._conditions:
                if rows.num_rows and not (mask := condition.mask(rows, self.file_paths)).all():
                    rows = rows.filter(pa.array(mask))
            if rows.num_rows:
                yield rows
            del piece, rows
