"""Arguments of Dataset methods, checked where they are given."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import CheckpointError, ConfigError, PenstockError
from penstock.config.sizes import parse_size
from penstock.data.arrow_numpy import leaf_type
from penstock.readers.order import Shard


def size_argument(method: str, size: Any) -> int:
    """The bytes that an argument such as "64MiB" or 65536 means."""
    advice = "expected a size such as '64MiB' or a number of bytes"
    try:
        num_bytes = parse_size(size) if isinstance(size, str) else _whole(size)
    except (ValueError, TypeError) as error:
        raise ConfigError.at(method, f"is {size!r}; {advice}") from error
    if num_bytes < 1:
        raise ConfigError.at(method, f"is {size}; a size is at least one byte")
    return num_bytes


def count_argument(method: str, count: Any, advice: str) -> int:
    """A whole number of at least one."""
    if not _is_integer(count) or count < 1:
        raise ConfigError.at(method, f"is {count!r}; {advice}")
    return int(count)


def seed_argument(method: str, seed: Any) -> int:
    """Any whole number."""
    if not _is_integer(seed):
        raise ConfigError.at(method, f"seed is {seed!r}; give a whole number")
    return int(seed)


def epoch_argument(epoch: Any) -> int:
    """The number of an epoch."""
    if not _is_integer(epoch) or epoch < 0:
        raise ConfigError.at("set_epoch", f"is {epoch!r}; epochs are counted from 0")
    return int(epoch)


def number_argument(method: str, name: str, number: Any) -> float:
    """An integer or a float."""
    if isinstance(number, bool) or not isinstance(number, int | float | np.integer | np.floating):
        raise ConfigError.at(method, f"{name} is {number!r}; give a number")
    return number if isinstance(number, int | float) else number.item()


def flag_argument(method: str, name: str, flag: Any) -> bool:
    """True or False, and not something that only counts as one of them."""
    if not isinstance(flag, bool | np.bool_):
        raise ConfigError.at(method, f"{name} is {flag!r}; give True or False")
    return bool(flag)


def shard_argument(index: Any, count: Any) -> Shard:
    """Which of how many shards."""
    for number in (index, count):
        if not _is_integer(number):
            raise ConfigError.at(
                "shard",
                f"{number!r} is no whole number; give the index, counted from 0, and the number of shards",
            )
    try:
        return Shard(int(index), int(count))
    except ValueError as error:
        raise ConfigError.at("shard", str(error)) from error


def names_argument(method: str, names: Any) -> tuple[str, ...]:
    """Names of columns, each once."""
    if isinstance(names, str | bytes | Mapping) or not isinstance(names, Iterable):
        raise ConfigError.at(method, f"is {names!r}; give a list of names")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str):
            raise ConfigError.at(method, f"{name!r} is no name; columns are named by texts")
    twice = [name for name, times in Counter(found).items() if times > 1]
    if twice:
        raise ConfigError.at(method, f"'{twice[0]}' is named twice; a batch has each column once")
    return found


def mapping_argument(method: str, given: Any, example: str) -> dict[str, Any]:
    """Something for each of some columns."""
    if not isinstance(given, Mapping):
        raise ConfigError.at(method, f"is {kind_of(given)}; give a dict, such as {example}")
    for name in given:
        if not isinstance(name, str):
            raise ConfigError.at(method, f"{name!r} is no name; columns are named by texts")
    return dict(given)


def function_argument(fn: Callable[..., Any], seed: int | None, is_by_row: bool) -> Callable[..., Any]:
    """A function that can be called with what a map gives it."""
    if not callable(fn):
        raise ConfigError.at("map", f"is {fn!r}; give a function")
    what = "a row" if is_by_row else "a batch"
    given: Sequence[str] = [what] if seed is None else [what, "a generator"]
    try:
        signature = inspect.signature(fn)
    except (ValueError, TypeError):  # of some functions written in C, nobody knows
        return fn
    try:
        signature.bind(*given)
    except TypeError as error:
        reason = "with seed=" if seed is not None else "without seed="
        raise ConfigError.at(
            "map", f"{name_of(fn)}{signature} is called with {' and '.join(given)}, {reason}: {error}"
        ) from error
    return fn


def check_fill(name: str, kind: Any, value: Any, advice_on_text: str) -> None:
    """Refuse a value that a column cannot hold; `advice_on_text` is for a column that is text."""
    try:
        if value is None:
            raise TypeError("None stands for no value")
        pa.scalar(value, leaf_type(kind))
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError) as error:
        advice = advice_on_text if pa.types.is_string(kind) else ""
        raise ConfigError.at(
            "fill_nulls", f"{value!r} is no value of column '{name}', which is {kind}{advice}"
        ) from error


def kind_of(value: Any) -> str:
    """What something is, for messages."""
    return "None" if value is None else f"an object of type {type(value).__name__}"


def name_of(fn: Callable[..., Any]) -> str:
    """What a function is called, for messages."""
    return str(getattr(fn, "__name__", type(fn).__name__))


def _is_integer(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def _whole(number: Any) -> int:
    """A number of bytes; 64e6 is one, 1.5 is none."""
    if isinstance(number, float) and number.is_integer():
        return int(number)
    if not _is_integer(number):
        raise TypeError("no whole number")
    return int(number)


_NUMBERS = ("first_epoch", "given_in_epoch", "given_in_all")
_ROW_NUMBERS = ("epoch", "row")
_ORDER_KEYS = {"files", "blocks", "seed", "shard"}


def check_position(state: Any) -> None:
    """Refuse what `state_dict` of a Dataset never gave."""
    problem = _problem(state)
    if problem is not None:
        raise CheckpointError(f"this is no place of a Dataset: {problem}; load what state_dict() of one gave")


def _problem(state: Any) -> str | None:
    if not isinstance(state, Mapping):
        return f"it is {kind_of(state)}"
    if not {*_NUMBERS, "first_rows", "rows"} <= state.keys():
        return f"it has no '{next(key for key in (*_NUMBERS, 'first_rows', 'rows') if key not in state)}'"
    rows = state["rows"]
    if not isinstance(rows, Mapping) or not {*_ROW_NUMBERS, "done", "order"} <= rows.keys():
        return "its 'rows' are no position"
    for key, value in [*((key, state[key]) for key in _NUMBERS), *((key, rows[key]) for key in _ROW_NUMBERS)]:
        if not isinstance(value, int) or value < 0:
            return f"its '{key}' is {value!r}, and no number from 0 on"
    if not isinstance(rows["order"], Mapping) or not rows["order"].keys() >= _ORDER_KEYS:
        return "its 'order' does not say which rows were read"
    if rows["done"] is not None and not isinstance(rows["done"], Mapping):
        return f"its 'done' is {rows['done']!r}"
    return None


_WORDS = {
    "data_config.max_batch_rows": ".batch(max_rows=)",
    "data_config.batch_cost_size": ".batch(limit=)",
    "data_config.batch_size": ".batch(rows)",
    "data_config.sample_cost": "batch",
    "data_config.shuffle_buffer": ".shuffle(buffer)",
    "data_config.null_cost": ".batch(null_cost=)",
    "data_config.oversize": ".batch(oversize=)",
    "data_config.input_fields": "types=",
    "data_config.delimiter": "delimiter=",
    "data_config.with_header": "header=",
    "unless with_header is true": "unless header=True",
    "are delimiter and with_header right?": "are delimiter= and header= right?",
    "; set train_input_path or eval_input_path": "",
    "no column is wanted; name features or label_fields": "no column is wanted; name some",
    "raise memory.limit": "raise the limit of .memory(limit)",
}


@contextmanager
def own_words() -> Iterator[None]:
    """Errors that pass through name methods and arguments where they named keys."""
    try:
        yield
    except PenstockError as error:
        text = str(error)
        for key, argument in _WORDS.items():
            text = text.replace(key, argument)
        if text == str(error):
            raise
        raise type(error)(text) from error.__cause__
