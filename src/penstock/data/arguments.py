"""Arguments of Dataset methods, checked where they are given, and errors in the words of these arguments."""

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np

from penstock.config.errors import CheckpointError, ConfigError, PenstockError
from penstock.config.sizes import MIB, parse_size


def require(is_right: object, method: str, message: str) -> None:
    if not is_right:
        raise ConfigError.at(method, message)


def size_argument(method: str, size: Any, cure: str = "") -> int:
    """The bytes that an argument such as "64MiB" or 64e6 means.

    A small number without a unit is refused: whoever writes 1000 means rows, batches or megabytes. `cure` is what they
    may write instead.
    """
    num_bytes: Any = size
    if isinstance(size, str):
        with suppress(ValueError):
            num_bytes = parse_size(size)
    elif isinstance(size, float) and size.is_integer():
        num_bytes = int(size)
    advice = "expected a size such as '64MiB' or a number of bytes"
    require(is_whole(num_bytes), method, f"is {size!r}; {advice}")
    require(num_bytes >= 1, method, f"is {size}; a size is at least one byte")
    has_unit = isinstance(size, str) and not size.strip().isdecimal()
    require(has_unit or num_bytes >= MIB, method, f"is {size}, which would be bytes; write '64MiB'{cure}")
    return int(num_bytes)


def whole_argument(method: str, number: Any, advice: str, at_least: int | None = 1, name: str = "") -> int:
    """A whole number; `name` is that of the argument where the method has several."""
    is_right = is_whole(number) and (at_least is None or number >= at_least)
    require(is_right, method, f"{name} is {number!r}; {advice}".lstrip())
    return int(number)


def number_argument(method: str, name: str, number: Any) -> float:
    is_number = isinstance(number, int | float | np.integer | np.floating) and not isinstance(number, bool)
    require(is_number, method, f"{name} is {number!r}; give a number")
    return number if isinstance(number, int | float) else number.item()


def flag_argument(method: str, name: str, flag: Any) -> bool:
    require(isinstance(flag, bool | np.bool_), method, f"{name} is {flag!r}; give True or False")
    return bool(flag)


def names_argument(method: str, names: Any) -> tuple[str, ...]:
    is_list = isinstance(names, Iterable) and not isinstance(names, str | bytes | Mapping)
    require(is_list, method, f"is {names!r}; give a list of names")
    found = tuple(names)
    for name, times in Counter(found).items():
        require(isinstance(name, str), method, f"{name!r} is no name; columns are named by texts")
        require(times == 1, method, f"'{name}' is named twice; a batch has each column once")
    return found


def mapping_argument(method: str, given: Any, example: str) -> dict[str, Any]:
    require(isinstance(given, Mapping), method, f"is {kind_of(given)}; give a dict, such as {example}")
    names_argument(method, list(given))
    return dict(given)


def function_argument(fn: Callable[..., Any], seed: int | None, is_by_row: bool) -> Callable[..., Any]:
    require(callable(fn), "map", f"is {fn!r}; give a function")
    what = "a row" if is_by_row else "a batch"
    given = [what] if seed is None else [what, "a generator"]
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


def kind_of(value: Any) -> str:
    return "None" if value is None else f"an object of type {type(value).__name__}"


def name_of(fn: Callable[..., Any]) -> str:
    return str(getattr(fn, "__name__", type(fn).__name__))


def is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


_PARTS = {
    "": ("first_epoch", "given_in_epoch", "given_in_all", "first_rows", "rows"),
    "rows": ("epoch", "row", "done", "order"),
    "order": ("files", "blocks", "seed", "shard"),
}
"""What a position holds, each part inside of the one before."""


def check_position(state: Any) -> None:
    """Refuse what `state_dict` of a Dataset never gave."""
    part, problem = state, ""
    for name, keys in _PARTS.items():
        part, subject = (part[name], f"its '{name}'") if name else (part, "it")
        missing = [key for key in keys if key not in part] if isinstance(part, Mapping) else []
        if missing or not isinstance(part, Mapping):
            problem = f"{subject} has no '{missing[0]}'" if missing else f"{subject} is {kind_of(part)}"
            break
    if problem:
        raise CheckpointError(
            f"this is no position of a Dataset: {problem}; load what state_dict() of one gave"
        )


_ARGUMENTS = {
    "data_config.max_batch_rows": ".batch(max_rows=)",
    "data_config.batch_cost_size": ".batch(limit=)",
    "data_config.batch_size": ".batch(rows)",
    "data_config.shuffle_buffer": "the buffer of .shuffle(buffer)",
    "data_config.prefetch": "the bytes of .prefetch(num_bytes)",
    "data_config.null_cost": ".batch(null_cost=)",
    "data_config.oversize": ".batch(oversize=)",
    "data_config.input_fields": "types=",
    "data_config.delimiter": "delimiter=",
    "data_config.encoding": "encoding=",
    "data_config.with_header": "header=",
    "data_config.decimal to ','": "decimal=','",
    "with_header is true": "header=True",
    "delimiter and with_header": "delimiter= and header=",
    "features or label_fields": "some",
    "memory.limit": "the limit of .memory(limit)",
}
"""What a Dataset calls the settings of a run file."""


@contextmanager
def own_words(words: Mapping[str, str] = _ARGUMENTS) -> Iterator[None]:
    """Errors that pass through name methods and arguments, or `words`, instead of settings of a run file."""
    try:
        yield
    except PenstockError as error:
        text = str(error)
        for setting in error.settings:
            text = text.replace(setting, words.get(setting, setting)) if setting else text
        if text == str(error):
            raise
        raise type(error)(text) from error.__cause__
