"""What `from_arrays` is given: a mapping of arrays, a table or a data frame -> columns of NumPy or Arrow."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import DataError
from penstock.pipeline.dataset.arguments import kind_of
from penstock.readers.memory_arrays import MEMORY

_ADVICE = 'give a dict of arrays, such as {"x": features, "y": labels}, or a table'


def columns_in(given: Any) -> dict[str, Any]:
    """Each column by its name."""
    return {name: _array(name, values) for name, values in _by_name(given).items()}


def _by_name(given: Any) -> dict[str, Any]:
    if isinstance(given, pa.Table | pa.RecordBatch):
        names: list[Any] = given.schema.names
        arrays = list(given.columns)
    elif isinstance(given, Mapping) or _is_data_frame(given):
        names, arrays = list(given.keys()), [values for _, values in given.items()]
    else:
        raise DataError(f"from_arrays: this is {kind_of(given)}; {_ADVICE}")
    for name, times in Counter(names).items():
        if not isinstance(name, str):
            raise DataError(f"from_arrays: {name!r} is no name; columns are named by texts")
        if times > 1:
            raise DataError.at(f"stands {times} times in this table", file=MEMORY, column=name)
    return dict(zip(names, arrays, strict=True))


def _is_data_frame(given: Any) -> bool:
    """Whether it is one of pandas, which need not be installed."""
    return hasattr(given, "items") and hasattr(given, "columns")


def _array(name: str, values: Any) -> Any:
    """A NumPy or an Arrow array: what is none yet becomes one, with texts and lists of different lengths in Arrow."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        if isinstance(values, list | tuple):
            return pa.array(values)
        array = np.asarray(values)
        if array.dtype.hasobject and not array.ndim:
            raise DataError.at(
                f"is {kind_of(values)}; give a NumPy array, a list or an Arrow array",
                file=MEMORY,
                column=name,
            )
        return pa.array(array) if array.dtype.hasobject else array
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, ValueError) as error:
        raise DataError.at(f"is no array: {error}", file=MEMORY, column=name) from error
