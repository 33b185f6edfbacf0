"""Values of strings through the compiled kernels: split, parsed, hashed, looked up, joined.

The kernels module is imported where it is needed, so that columns of integers and numbers never pay for numba.
"""

from dataclasses import replace
from enum import IntEnum
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.features.values import (
    BadItem,
    Bytes,
    Float64Array,
    Int64Array,
    NumberArray,
    SparseColumn,
    Strings,
    Values,
    one_per_row,
    row_of_value,
    sum_by_row,
)

_PROBLEMS = (
    "is not a 64-bit integer; other values need hash_bucket_size or a vocabulary, in fg_mode FG_NORMAL",
    "has a weight that is not a finite number",
    "has no key",
)
_NO_STEPS = 0


class Rule(IntEnum):
    """How a token becomes an id."""

    PARSE_INTEGER = 0
    HASH = 1
    """The xxh64 (seed 0) of its bytes, modulo the number of buckets; all 64 bits where that is 0."""
    LOOK_UP = 2
    """In a vocabulary."""


Vocabulary = tuple[Int64Array, Int64Array, Bytes, Int64Array]
"""A table that the kernels search: slots, their ids, and the keys (data and offsets)."""

NO_VOCABULARY: Vocabulary = (
    np.full(1, -1, np.int64),
    np.zeros(1, np.int64),
    np.frombuffer(b"", np.uint8),
    np.zeros(1, np.int64),
)


def encode_strings(
    values: Values,
    rule: Rule,
    num_buckets: int = 1,
    vocabulary: Vocabulary = NO_VOCABULARY,
    *,
    weighted: bool = False,
    max_steps: int = _NO_STEPS,
) -> SparseColumn:
    """The ids of all tokens of strings; one that cannot be an id raises BadItem.

    `weighted`: tokens are "key:weight". A sequence of strings is cut after `max_steps` steps (0: not).
    """
    from penstock.features import kernels

    strings = values.items
    assert isinstance(strings, Strings)
    separators, is_sequence = values.separators, len(values.separators) == 2
    max_tokens, max_lengths = _max_counts(strings, separators)
    ids = np.empty(max_tokens, np.int64)
    lengths = np.empty(max_lengths, np.int32)
    steps = np.empty(len(strings) if is_sequence else 0, np.int32)
    weights = np.empty(max_tokens if weighted else 0, np.float32)
    arrays, bad = (strings.data, strings.starts, strings.ends), np.zeros(4, np.int64)
    num_values = -1
    if rule is Rule.PARSE_INTEGER and all(len(each) <= 1 for each in separators):
        step_byte, byte = ([-1, -1] + [each[0] if each else -1 for each in separators])[-2:]
        out = (ids, lengths, steps, weights)
        num_values, num_lengths = kernels.parse_plain_ids(arrays, (step_byte, byte, max_steps), out)
    if num_values < 0:
        num_values, num_lengths = kernels.encode_ids(
            arrays,
            _kernel_separators(separators, max_steps),
            int(rule),
            num_buckets,
            vocabulary,
            (ids, lengths, steps, weights, bad),
        )
    if num_values < 0:
        index, begin, end, reason = bad.tolist()
        token = strings.data[begin:end].tobytes().decode("utf-8", errors="replace")
        raise BadItem(row_of_value(values.lengths, index), token, _PROBLEMS[reason])
    found = SparseColumn(
        ids[:num_values],
        lengths[:num_lengths],
        weights[:num_values] if weighted else None,
        steps if is_sequence else values.steps,
    )
    if values.lengths is one_per_row(len(strings)):
        return found
    kept = values.weights if values.weights is None else values.weights[found.lengths > 0]
    return replace(
        found,
        lengths=sum_by_row(found.lengths, values.lengths),
        weights=found.weights if kept is None else kept,
    )


def split(values: Values, max_steps: int = _NO_STEPS, *, are_numbers: bool = False) -> Values:
    """Values of which every string is one value, and none is empty. Numbers stay as they are.

    `are_numbers`: the strings are to be numbers, of which none may be empty among others.
    """
    strings, separators = values.items, values.separators
    if not isinstance(strings, Strings):
        return values
    if any(separators) or are_numbers:
        from penstock.features import kernels

        is_sequence = len(separators) == 2
        max_tokens, max_lengths = _max_counts(strings, separators)
        starts, ends = np.empty(max_tokens, np.int64), np.empty(max_tokens, np.int64)
        lengths = np.empty(max_lengths, np.int32)
        steps = np.empty(len(strings) if is_sequence else 0, np.int32)
        num_values, num_lengths = kernels.split(
            (strings.data, strings.starts, strings.ends),
            _kernel_separators(separators, max_steps),
            are_numbers,
            (starts, ends, lengths, steps),
        )
        found = Strings(strings.data, starts[:num_values], ends[:num_values])
        lengths = lengths[:num_lengths]
        if values.lengths is not one_per_row(len(strings)):
            lengths = sum_by_row(lengths, values.lengths)
        return Values(found, lengths, steps if is_sequence else values.steps)
    present = strings.ends > strings.starts
    if present.all():
        return replace(values, separators=())
    weights = None if values.weights is None else values.weights[present]
    return Values(strings.take(present), sum_by_row(present, values.lengths), values.steps, weights)


def as_numbers(values: Values, max_steps: int = _NO_STEPS) -> Values:
    """Values of numbers: those of strings are parsed, each to the nearest double."""
    if not isinstance(values.items, Strings):
        return values
    values = split(values, max_steps, are_numbers=True)
    strings = values.items
    assert isinstance(strings, Strings)
    return replace(values, items=_parsed(strings, values))


def _parsed(strings: Strings, values: Values) -> Float64Array:
    from penstock.features import kernels

    numbers, bad = np.empty(len(strings), np.float64), np.zeros(4, np.int64)
    if kernels.parse_numbers((strings.data, strings.starts, strings.ends), numbers, bad) == 0:
        return numbers
    if bad[3] == kernels.NOT_EXACT or strings[int(bad[0])].strip().lower().lstrip("+-") in _SPELLED:
        # Arrow knows infinities, and rounds long numbers right.
        try:
            found: Any = pc.cast(pc.ascii_trim(to_arrow(strings), " \t"), pa.float64())
            return np.asarray(found.to_numpy())
        except pa.ArrowInvalid:
            first = next(index for index in range(len(strings)) if not _is_number(strings[index]))
            raise _not_a_number(strings, first, values) from None
    raise _not_a_number(strings, int(bad[0]), values)


def _not_a_number(strings: Strings, index: int, values: Values) -> BadItem:
    return BadItem(row_of_value(values.lengths, index), strings[index], "is not a number")


_SPELLED = ("nan", "inf", "infinity")


def _is_number(string: str) -> bool:
    try:
        float(string)
    except ValueError:
        return False
    return "_" not in string


def as_strings(values: Values) -> Values:
    """Values of strings, each one value: integers as they are written, whole numbers as integers."""
    if isinstance(values.items, Strings):
        return split(values)
    items = values.items
    if items.dtype != np.int64:
        present = ~np.isnan(items)
        if not present.all():
            items, values = items[present], replace(values, lengths=sum_by_row(present, values.lengths))
        integers = items.astype(np.int64)
        if not (integers == items).all():
            return replace(values, items=from_list([f"{item:.15g}" for item in items.tolist()]))
        items = integers
    from penstock.features import kernels

    data = np.empty(20 * len(items), np.uint8)
    starts, ends = np.empty(len(items), np.int64), np.empty(len(items), np.int64)
    kernels.format_integers(_read_only(items), data, starts, ends)
    return replace(values, items=Strings(data, starts, ends))


def joined_pairs(left: Strings, right: Strings, pairs: Int64Array, glue: bytes = b"_") -> Strings:
    """String i is left[pairs[0, i]] and right[pairs[1, i]] with `glue` between them."""
    from penstock.features import kernels

    sizes = (left.ends - left.starts)[pairs[0]] + (right.ends - right.starts)[pairs[1]] + len(glue)
    data = np.empty(int(sizes.sum()), np.uint8)
    starts, ends = np.empty(len(sizes), np.int64), np.empty(len(sizes), np.int64)
    kernels.join(
        (left.data, left.starts, left.ends),
        (right.data, right.starts, right.ends),
        pairs,
        np.frombuffer(glue, np.uint8),
        (data, starts, ends),
    )
    return Strings(data, starts, ends)


def hash_integers(values: Int64Array, num_buckets: int) -> Int64Array:
    """The hash of each integer's decimal string, as if the column had held strings."""
    from penstock.features import kernels

    ids = np.empty(len(values), np.int64)
    kernels.hash_integers(_read_only(values), num_buckets, ids)
    return ids


def from_list(strings: list[str]) -> Strings:
    encoded = [string.encode() for string in strings]
    bounds = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(string) for string in encoded], out=bounds[1:])
    return Strings(np.frombuffer(b"".join(encoded), np.uint8), bounds[:-1], bounds[1:])


def to_arrow(strings: Strings) -> Any:
    """A compact Arrow array of the same strings; without a copy of their bytes where they stand one after the other."""
    starts, ends = strings.starts, strings.ends
    if not len(starts) or (starts[1:] == ends[:-1]).all():
        bounds = np.append(starts, ends[-1:]) if len(starts) else np.zeros(1, np.int64)
        data = strings.data
    else:
        nothing = Strings(np.frombuffer(b"", np.uint8), np.zeros(1, np.int64), np.zeros(1, np.int64))
        pairs = np.stack([np.arange(len(strings)), np.zeros(len(strings), np.int64)])
        compact = joined_pairs(strings, nothing, pairs, b"")
        bounds, data = np.append(compact.starts, compact.ends[-1:]), compact.data
    buffers = (pa.py_buffer(cast(Any, bounds)), pa.py_buffer(cast(Any, data)))
    return pa.LargeStringArray.from_buffers(len(strings), *buffers)


def _kernel_separators(separators: tuple[bytes, ...], max_steps: int) -> tuple[Bytes, Bytes, int]:
    step_separator, separator = (b"", b"", *separators)[-2:]
    return np.frombuffer(step_separator, np.uint8), np.frombuffer(separator, np.uint8), max_steps


def _max_counts(strings: Strings, separators: tuple[bytes, ...]) -> tuple[int, int]:
    """No fewer than the tokens, and the steps, of all strings together."""
    if not len(strings):
        return 0, 0
    starts, ends = strings.starts, strings.ends
    used = strings.data[int(starts.min()) : int(ends.max())]
    if (starts[1:] >= ends[:-1]).all():
        counts = [int(np.count_nonzero(used == each[0])) if each else 0 for each in separators]
    else:  # some are the same bytes
        counts = [int((ends - starts).sum()) if each else 0 for each in separators]
    num_steps = len(strings) + (counts[0] if len(separators) == 2 else 0)
    return len(strings) + sum(counts), num_steps


def _read_only(array: NumberArray) -> NumberArray:
    """numba compiles once for read-only arrays: views of Arrow memory may be writable or not."""
    view = array.view()
    view.flags.writeable = False
    return view
