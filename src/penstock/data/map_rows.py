"""A user's function on batches or rows: what it is given, and what it may give back.

With a seed the function gets a generator as its second argument, derived from the seed, the epoch and the origin of
the (first) row. So what it draws does not depend on threads, workers, shards, or on where a run went on; and as each
row comes once in an epoch, no two calls get the same numbers.
"""

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import DataError
from penstock.data.arguments import kind_of, name_of
from penstock.data.arrow_numpy import Column, Columns, Origin, Ragged
from penstock.readers.order import derive_generator

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class MapStep:
    fn: Callable[..., Any]
    seed: int | None
    by_row: bool
    index: int
    """Which `.map` of the chain it is: two with one seed draw different numbers."""

    def on_batch(self, columns: Columns, origin: Origin) -> tuple[Columns, Origin]:
        """The batch that the function makes of one, row by row where it asked for that, and which rows are left."""
        num_rows = origin.num_rows
        if self.by_row:
            made = [self.on_row(row_of(columns, index), origin, index) for index in range(num_rows)]
            kept = [index for index, row in enumerate(made) if row is not None]
            origin = origin if len(kept) == num_rows else origin.of_rows(kept)
            lists = {name for name, column in columns.items() if isinstance(column, Ragged)}
            return _stacked([row for row in made if row is not None], lists, origin), origin
        what = f"a batch of {num_rows} that begins with "
        given = self._call(columns, origin, 0, what)
        if given is None:
            raise self._refusal(given, what + origin.describe(0))
        found = _checked(given, origin)
        num_left = len(next(iter(found.values()), range(num_rows)))
        if num_left != num_rows:
            origin = replace(origin, record_batch=origin.record_batch.slice(0, num_left), is_exact=False)
        return found, origin

    def on_row(self, row: Row, origin: Origin, index: int) -> Row | None:
        """None: the row is left out."""
        made = self._call(row, origin, index)
        return None if made is None else dict(made)

    def _call(
        self, element: Row | Columns, origin: Origin, row: int, what: str = ""
    ) -> Mapping[str, Any] | None:
        given: list[Any] = [element]
        if self.seed is not None:
            row_id = int(origin.row_ids[row])
            given.append(derive_generator("map", self.seed, self.index, origin.epoch, row_id))
        try:
            made = self.fn(*given)
        except Exception as error:
            text = " ".join(str(error).split()) or "(without a text)"
            raise DataError(
                f"map: {name_of(self.fn)} failed for {what}{origin.describe(row)}: {type(error).__name__}: {text}"
            ) from error
        if made is not None and not isinstance(made, Mapping):
            raise self._refusal(made, what + origin.describe(row))
        return made

    def _refusal(self, made: Any, what: str) -> DataError:
        columns = "columns, or None to leave the row out" if self.by_row else "columns"
        return DataError(
            f"map: {name_of(self.fn)} gave {kind_of(made)} for {what}; return a dict of {columns}"
        )


def row_of(columns: Columns, index: int) -> Row:
    return {name: column[index] for name, column in columns.items()}


def _checked(made: Mapping[str, Any], origin: Origin) -> Columns:
    """The columns that a function gave back, as arrays with one value for each row that it left."""
    found: Columns = {}
    for name, column in made.items():
        array: Column = column if isinstance(column, Ragged) else _array(name, column)
        first = next(iter(found), None)
        is_single = isinstance(array, np.ndarray) and not array.ndim
        if is_single or len(array) > origin.num_rows or (first and len(array) != len(found[first])):
            has = "a single value" if is_single else f"{len(array)} rows"
            beside = f", and '{first}' {len(found[first])}," if first else ""
            raise DataError(
                f"map: column '{name}' has {has}{beside} for a batch of {origin.num_rows} that begins with "
                f"{origin.describe(0)}; give back one value for each row, or leave the same rows out of all columns"
            )
        found[str(name)] = array
    return found


def _stacked(rows: list[Row], lists: Set[str], origin: Origin) -> Columns:
    """The rows that a function gave back, as columns; `lists` were lists when they came in, and stay so."""
    names = list(rows[0]) if rows else []
    for index, row in enumerate(rows):
        if row.keys() != rows[0].keys():
            raise DataError(
                f"map: the columns are {', '.join(names)} for {origin.describe(0)} but {', '.join(row)} for "
                f"{origin.describe(index)}; give the same columns for every row"
            )
    return {name: _column(name, [row[name] for row in rows], name in lists) for name in names}


def _column(name: str, values: list[Any], is_list: bool) -> Column:
    """Values of one row each: an array where all have one shape, else lists of different lengths."""
    if any(isinstance(value, Ragged) for value in values):
        raise DataError(f"map: column '{name}' has lists of lists, which only a map on batches can give back")
    arrays = [_array(name, value) for value in values]
    if not is_list and len({array.shape for array in arrays}) == 1:
        return _array(name, values)
    arrays = [np.atleast_1d(array) for array in arrays]
    offsets = np.cumsum([0, *(len(array) for array in arrays)])
    return Ragged(np.concatenate(arrays), offsets)


def _array(name: str, values: Any) -> NDArray[Any]:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise DataError(
            f"map: column '{name}' is no array, since its lists have different lengths; give them as "
            "penstock.Ragged(values, offsets)"
        ) from error
    return array.astype(object) if array.dtype.kind in "US" else array
