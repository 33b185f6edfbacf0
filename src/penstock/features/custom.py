"""custom_feature: values made by a class of the user, named by its dotted path, or by one that is built in.

The class is made once in every process, with operator_params as keyword arguments, and called once for every batch:

    operator(first, second, ...) -> one entry for each row: a value, a list of values, or None

Each argument is the Arrow array of one input: strings, int64, floats, dates or timestamps, with nulls where rows have
no value. What comes back may be an Arrow array, a NumPy array or a list; its values are encoded like those of any
feature. Two attributes of the class change what it is given:

    reads_strings = True    strings, whatever type the columns have, as they are written
    takes_lists = True      a list of values in each row; else a row has one value at most
"""

import threading
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.registry import CustomPart, error_text, make_part
from penstock.features.arrow_values import read_values
from penstock.features.feature import Recipe
from penstock.features.sections.types import CustomFeature
from penstock.features.strings import as_strings, to_arrow
from penstock.features.values import BadItem, BadValue, Strings, Values

_BUILT_IN = {"EditDistance": "penstock.features.edit_distance:EditDistance"}


def custom_recipe(config: CustomFeature) -> Recipe:
    operator = Operator(config.operator_name, config.operator_params, config.is_op_thread_safe)
    return Recipe(tuple(config.expression), operator, reads_text=operator.reads_strings)


class Operator:
    """A user's operator as a transform; it goes to other processes as its name and options."""

    def __init__(self, name: str, options: Mapping[str, Any], is_thread_safe: bool) -> None:
        path = _BUILT_IN.get(name, name)
        self._rebuilt = name, dict(options), is_thread_safe
        self.name = name
        self.operator = make_part("feature", CustomPart(import_path=path, options=dict(options)))
        self.reads_strings = bool(getattr(self.operator, "reads_strings", False))
        self.takes_lists = bool(getattr(self.operator, "takes_lists", False))
        self._lock: Any = nullcontext() if is_thread_safe else threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return Operator, self._rebuilt

    def __call__(self, inputs: Sequence[Values]) -> Values:
        num_rows = inputs[0].num_rows
        if not num_rows:
            return Values(np.empty(0), np.empty(0, np.int32))
        arrays = [self._array(values, index) for index, values in enumerate(inputs)]
        try:
            with self._lock:
                result = self.operator(*arrays)
            found = result if isinstance(result, pa.Array | pa.ChunkedArray) else pa.array(list(result))
            values = read_values(found, self.name)
        except BadValue as error:
            raise BadItem(error.row, error.value, f"{error.problem}; {self.name} gave it") from error
        except Exception as error:  # code of somebody else
            raise BadItem(None, None, f"{self.name} failed: {error_text(error)}") from error
        if len(found) != num_rows:
            raise BadItem(None, None, f"{self.name} gave {len(found)} entries for {num_rows} rows")
        return values

    def _array(self, values: Values, source: int) -> Any:
        values = as_strings(values) if self.reads_strings else values
        lengths = values.lengths
        if isinstance(values.items, Strings):
            items = to_arrow(values.items).cast(pa.string())
        elif values.time_unit > 1:  # days
            items = pa.array(values.items, pa.int32()).cast(pa.date32())
        else:
            items = pa.array(values.items, pa.timestamp("s") if values.time_unit else None)
        ends = np.cumsum(lengths, dtype=np.int64)
        if self.takes_lists:
            return pa.LargeListArray.from_arrays(pa.array(np.concatenate([[0], ends])), items)
        if (lengths == 1).all():
            return items
        if (several := lengths > 1).any():
            row = int(np.argmax(several))
            problem = f"has {lengths[row]} values; {self.name} takes one in each row (takes_lists is not set)"
            raise BadItem(row, None, problem, source)
        return items.take(pa.array(ends - 1, mask=lengths == 0))
