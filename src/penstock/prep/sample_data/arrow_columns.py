"""NumPy values -> Arrow columns, with NaN as null."""

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Column: TypeAlias = "pa.Array[Any]"


def column(values: npt.NDArray[Any], kind: pa.DataType | None = None) -> Column:
    """One value per row, in the type given or in NumPy's own. NaN becomes null."""
    array = pa.array(values, from_pandas=True)
    return cast(Column, array if kind is None else array.cast(kind))


def words(codes: npt.NDArray[np.int64], vocabulary: Sequence[str]) -> Column:
    """One word per row; dictionary-encoded, which costs four bytes a row however long the words are."""
    return pa.DictionaryArray.from_arrays(column(codes, pa.int32()), pa.array(vocabulary))


def lists(offsets: npt.NDArray[np.int64], values: Column) -> Column:
    """One list per row: the values from its offset up to the next."""
    return pa.ListArray.from_arrays(cast(Any, column(offsets, pa.int32())), values)


def maps(offsets: npt.NDArray[np.int64], keys: Column, items: Column) -> Column:
    """One map per row: the keys and items from its offset up to the next."""
    return pa.MapArray.from_arrays(cast(Any, column(offsets, pa.int32())), keys, items)
