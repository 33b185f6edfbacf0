"""Compiled loops over strings.

Strings are (data, starts, ends): string i is data[starts[i]:ends[i]], UTF-8. Each kernel splits them, turns every token
into a number and writes values and lengths in one pass. Nothing raises in here: a token that cannot be used is
described in `bad` (string index, begin, end, reason) and the kernel returns -1.

Importing this module imports numba (about 110 MB), so only `penstock.features.strings` does, when a column
of strings is really parsed.
"""

from typing import Any

import numpy as np

from penstock.runtime.kernels import kernel

PARSE_INTEGER, HASH = 0, 1  # how a token becomes an id (penstock.features.strings.Rule); else it is looked up
NOT_AN_INTEGER, NOT_A_WEIGHT, NO_KEY, NOT_A_NUMBER, NOT_EXACT = range(5)  # why a token cannot be used

_POWERS = 10.0 ** np.arange(23)  # all of them exact

_PRIME_1 = np.uint64(0x9E3779B185EBCA87)
_PRIME_2 = np.uint64(0xC2B2AE3D27D4EB4F)
_PRIME_3 = np.uint64(0x165667B19E3779F9)
_PRIME_4 = np.uint64(0x85EBCA77C2B2AE63)
_PRIME_5 = np.uint64(0x27D4EB2F165667C5)
_LANE_1 = np.uint64(0x60EA27EEADC0B5D6)  # _PRIME_1 + _PRIME_2
_LANE_4 = np.uint64(0x61C8864E7A143579)  # -_PRIME_1


@kernel
def _rotate(value: Any, bits: Any) -> Any:
    return (value << np.uint64(bits)) | (value >> np.uint64(64 - bits))


@kernel
def _little_endian(data: Any, begin: Any, num_bytes: Any) -> Any:
    word = np.uint64(0)
    for i in range(num_bytes):
        word |= np.uint64(data[begin + i]) << np.uint64(8 * i)
    return word


@kernel
def _mix(lane: Any, word: Any) -> Any:
    return _rotate(lane + word * _PRIME_2, 31) * _PRIME_1


@kernel
def _merge(state: Any, lane: Any) -> Any:
    return (state ^ _mix(np.uint64(0), lane)) * _PRIME_1 + _PRIME_4


@kernel
def xxh64(data: Any, begin: Any, end: Any) -> Any:
    """The 64-bit xxHash, seed 0, of data[begin:end]."""
    position = begin
    if end - begin >= 32:
        a, b, c, d = _LANE_1, _PRIME_2, np.uint64(0), _LANE_4
        while position + 32 <= end:
            a = _mix(a, _little_endian(data, position, 8))
            b = _mix(b, _little_endian(data, position + 8, 8))
            c = _mix(c, _little_endian(data, position + 16, 8))
            d = _mix(d, _little_endian(data, position + 24, 8))
            position += 32
        state = _rotate(a, 1) + _rotate(b, 7) + _rotate(c, 12) + _rotate(d, 18)
        state = _merge(_merge(_merge(_merge(state, a), b), c), d)
    else:
        state = _PRIME_5
    state += np.uint64(end - begin)
    while position + 8 <= end:
        state ^= _mix(np.uint64(0), _little_endian(data, position, 8))
        state = _rotate(state, 27) * _PRIME_1 + _PRIME_4
        position += 8
    if position + 4 <= end:
        state = _rotate(state ^ (_little_endian(data, position, 4) * _PRIME_1), 23) * _PRIME_2 + _PRIME_3
        position += 4
    while position < end:
        state = _rotate(state ^ (np.uint64(data[position]) * _PRIME_5), 11) * _PRIME_1
        position += 1
    state = (state ^ (state >> np.uint64(33))) * _PRIME_2
    state = (state ^ (state >> np.uint64(29))) * _PRIME_3
    return state ^ (state >> np.uint64(32))


@kernel
def hash_integers(values: Any, num_buckets: Any, ids: Any) -> None:
    """Hashes each integer as its decimal text, as if the column had held text."""
    digits = np.empty(20, np.uint8)
    for i in range(len(values)):
        negative = values[i] < 0
        rest = ~np.uint64(values[i]) + np.uint64(1) if negative else np.uint64(values[i])
        begin = 20
        while begin == 20 or rest != np.uint64(0):
            begin -= 1
            digits[begin] = np.uint8(48) + np.uint8(rest % np.uint64(10))
            rest //= np.uint64(10)
        if negative:
            begin -= 1
            digits[begin] = np.uint8(45)
        ids[i] = np.int64(xxh64(digits, begin, 20) % np.uint64(num_buckets))


@kernel
def _trim(data: Any, begin: Any, end: Any) -> Any:
    while begin < end and (data[begin] == 32 or data[begin] == 9):
        begin += 1
    while end > begin and (data[end - 1] == 32 or data[end - 1] == 9):
        end -= 1
    return begin, end


@kernel
def _sign(data: Any, begin: Any, end: Any) -> Any:
    if begin < end and (data[begin] == 45 or data[begin] == 43):
        return data[begin] == 45, begin + 1
    return False, begin


@kernel
def _integer(data: Any, begin: Any, end: Any) -> Any:
    negative, begin = _sign(data, begin, end)
    value, known = np.uint64(0), begin < end
    for i in range(begin, end):
        digit = np.uint64(data[i]) - np.uint64(48)
        if digit > np.uint64(9) or value > np.uint64(922337203685477580):
            return np.int64(0), False
        value = value * np.uint64(10) + digit
    known = known and value <= np.uint64(9223372036854775807) + np.uint64(negative)
    return np.int64(~value + np.uint64(1) if negative else value), known


@kernel
def _weight(data: Any, begin: Any, end: Any) -> Any:
    """The number that the extent spells, exact enough for a float32, and whether it spells a finite one."""
    negative, begin = _sign(data, begin, end)
    digits, power, position, known = _decimal_digits(data, begin, end)
    if known and position < end:
        exponent, known = _exponent(data, position, end)
        power += exponent
    if digits == np.uint64(0) or power < -308:
        value = 0.0
    elif power > 308:
        value = np.inf
    else:
        value = digits / 10.0**-power if power < 0 else digits * 10.0**power
    return (-value if negative else value), known and np.isfinite(np.float32(value))


@kernel
def _decimal_digits(data: Any, begin: Any, end: Any) -> Any:
    """The first 19 significant digits as digits * 10**power, where all end, and whether there are any."""
    digits, power, num_digits, any_digit, after_point = np.uint64(0), 0, 0, False, False
    position = begin
    while position < end:
        byte = data[position]
        if 48 <= byte <= 57:
            any_digit = True
            if num_digits < 19:
                digits = digits * np.uint64(10) + np.uint64(byte - 48)
                num_digits += 1 if digits != np.uint64(0) else 0
                power -= 1 if after_point else 0
            else:
                power += 0 if after_point else 1
        elif byte == 46 and not after_point:
            after_point = True
        else:
            break
        position += 1
    return digits, power, position, any_digit


@kernel
def _exponent(data: Any, begin: Any, end: Any) -> Any:
    """The exponent from its 'e' on, held within what can matter, and whether it is one."""
    if data[begin] | 32 != 101:
        return 0, False
    negative, begin = _sign(data, begin + 1, end)
    exponent = 0
    for i in range(begin, end):
        if data[i] < 48 or data[i] > 57:
            return 0, False
        exponent = min(exponent * 10 + data[i] - 48, 100_000_000)
    return (-exponent if negative else exponent), begin < end


@kernel
def _find(data: Any, begin: Any, end: Any, separator: Any) -> Any:
    """Where the next separator begins, or `end`. An empty separator is nowhere."""
    size = len(separator)
    if size == 0:
        return end
    for position in range(begin, end - size + 1):
        if data[position] == separator[0]:
            matched = 1
            while matched < size and data[position + matched] == separator[matched]:
                matched += 1
            if matched == size:
                return position
    return end


@kernel
def _slot(data: Any, begin: Any, end: Any, slots: Any, key_data: Any, key_offsets: Any) -> Any:
    """The slot of the open-addressing table that holds this key, or the free one where it belongs."""
    mask = np.uint64(len(slots) - 1)
    slot = xxh64(data, begin, end) & mask
    while slots[slot] >= 0:
        key_begin, key_end = key_offsets[slots[slot]], key_offsets[slots[slot] + 1]
        same = key_end - key_begin == end - begin
        i = 0
        while same and i < end - begin:
            same = data[begin + i] == key_data[key_begin + i]
            i += 1
        if same:
            break
        slot = (slot + np.uint64(1)) & mask
    return slot


@kernel
def fill_slots(key_data: Any, key_offsets: Any, slots: Any) -> None:
    for key in range(len(key_offsets) - 1):
        slots[_slot(key_data, key_offsets[key], key_offsets[key + 1], slots, key_data, key_offsets)] = key


@kernel
def _fail(bad: Any, index: Any, begin: Any, end: Any, reason: Any) -> Any:
    bad[0], bad[1], bad[2], bad[3] = index, begin, end, reason
    return -1, -1


@kernel
def _split_weight(data: Any, begin: Any, end: Any) -> Any:
    """Where the key of "key:weight" ends, the weight (1 where there is none), and whether it is finite."""
    colon = end - 1
    while colon >= begin and data[colon] != 58:
        colon -= 1
    if colon < begin:
        return end, 1.0, True
    weight_begin, weight_end = _trim(data, colon + 1, end)
    weight, known = _weight(data, weight_begin, weight_end)
    return colon, weight, known


@kernel
def encode_ids(  # noqa: C901
    strings: Any, separators: Any, rule: Any, num_buckets: Any, vocabulary: Any, out: Any
) -> Any:
    """Splits strings into tokens and tokens ("key", or "key:weight") into ids; empty tokens count for nothing.

    `strings` is (data, starts, ends), `separators` (of steps, of values, most steps of a row), `vocabulary` (slots,
    their ids, key_data, key_offsets) and `out` (values, lengths, steps, weights, bad). Strings are sequences if `out`
    has space for their steps, an empty one of none; tokens have weights if it has space for those. Gives the numbers
    of values and of lengths. Long, because handing these tuples on to a function for each token would cost several
    times the work.
    """
    data, starts, ends = strings
    step_separator, separator, max_steps = separators
    slots, slot_ids, key_data, key_offsets = vocabulary
    values, lengths, steps, weights, bad = out
    weighted, is_sequence = len(weights) > 0, len(steps) > 0
    count, num_steps = 0, 0
    for row in range(len(starts)):
        begin, string_end, steps_before = starts[row], ends[row], num_steps
        while begin < string_end or not is_sequence or num_steps > steps_before:
            step_end, before = string_end, count
            if is_sequence:
                step_end = _find(data, begin, string_end, step_separator)
            while begin < step_end:
                end = _find(data, begin, step_end, separator)
                key_begin, key_end, known = begin, end, True
                if weighted:
                    key_end, weights[count], known = _split_weight(data, begin, end)
                    if not known:
                        return _fail(bad, row, begin, end, NOT_A_WEIGHT)
                if rule == PARSE_INTEGER:
                    key_begin, key_end = _trim(data, key_begin, key_end)
                if key_begin < key_end:
                    if rule == PARSE_INTEGER:
                        values[count], known = _integer(data, key_begin, key_end)
                    elif rule == HASH:
                        hashed = xxh64(data, key_begin, key_end)
                        values[count] = np.int64(hashed % np.uint64(num_buckets) if num_buckets else hashed)
                    else:
                        slot = _slot(data, key_begin, key_end, slots, key_data, key_offsets)
                        values[count] = slot_ids[slot]
                    if not known:
                        return _fail(bad, row, begin, end, NOT_AN_INTEGER)
                    count += 1
                elif weighted and key_end < end:
                    return _fail(bad, row, begin, end, NO_KEY)
                begin = end + max(len(separator), 1)
            lengths[num_steps] = count - before
            num_steps += 1
            if step_end == string_end or num_steps - steps_before == max_steps:
                break
            begin = step_end + len(step_separator)
        if is_sequence:
            steps[row] = num_steps - steps_before
    return count, num_steps


@kernel
def parse_plain_ids(strings: Any, separators: Any, out: Any) -> Any:  # noqa: C901
    """What `encode_ids` gives for integers, three times as fast; -1 where a token is unusual, and that is to be asked.

    Separators are single bytes; tokens are digits, or digits:weight with a weight of digits and a point.
    """
    data, starts, ends = strings
    step_byte, byte, max_steps = separators
    values, lengths, steps, weights = out
    weighted, is_sequence = len(weights) > 0, len(steps) > 0
    count, num_steps = 0, 0
    for row in range(len(starts)):
        position, end, steps_before, before = starts[row], ends[row], num_steps, count
        is_open = position < end or not is_sequence
        while is_open:
            value, first = np.uint64(0), position
            while position < end:
                digit = np.uint64(data[position]) - np.uint64(48)
                if digit > np.uint64(9):
                    break
                value = value * np.uint64(10) + digit
                position += 1
            num_digits = position - first
            if num_digits > 18:
                return -1, -1
            if weighted:
                weight, places, is_fraction = np.uint64(1), 0, False
                if position < end and data[position] == 58:
                    position += 1
                    weight, first = np.uint64(0), position
                    while position < end:
                        digit = np.uint64(data[position]) - np.uint64(48)
                        if digit > np.uint64(9):
                            if is_fraction or data[position] != 46:
                                break
                            is_fraction = True
                        else:
                            weight = weight * np.uint64(10) + digit
                            places += is_fraction
                        position += 1
                    if num_digits == 0 or position - first > 18 or position - first == is_fraction:
                        return -1, -1
                if num_digits:
                    weights[count] = weight / _POWERS[places]
            if num_digits:
                values[count] = np.int64(value)
                count += 1
            is_open = position < end
            if is_open and data[position] != byte and not (is_sequence and data[position] == step_byte):
                return -1, -1
            if not is_open or (is_sequence and data[position] == step_byte):
                lengths[num_steps], before = count - before, count
                num_steps += 1
                is_open = is_open and num_steps - steps_before != max_steps
            position += 1
            if position == end and is_open and is_sequence and data[end - 1] == step_byte:
                lengths[num_steps] = 0
                num_steps += 1
                is_open = False
        if is_sequence:
            steps[row] = num_steps - steps_before
    return count, num_steps


@kernel
def split(strings: Any, separators: Any, are_numbers: Any, out: Any) -> Any:
    """The tokens of strings, as where they start and end; empty ones count for nothing, and steps as above.

    Of numbers an empty token among others is kept, to be refused, and a blank string is empty.
    """
    data, starts, ends = strings
    step_separator, separator, max_steps = separators
    token_starts, token_ends, lengths, steps = out
    is_sequence = len(steps) > 0
    count, num_steps = 0, 0
    for row in range(len(starts)):
        begin, string_end, steps_before = starts[row], ends[row], num_steps
        if are_numbers:
            begin, string_end = _trim(data, begin, string_end)
        while begin < string_end or not is_sequence or num_steps > steps_before:
            step_end, before = string_end, count
            if is_sequence:
                step_end = _find(data, begin, string_end, step_separator)
            while begin < step_end:
                end = _find(data, begin, step_end, separator)
                if begin < end or are_numbers:
                    token_starts[count], token_ends[count] = begin, end
                    count += 1
                begin = end + max(len(separator), 1)
            lengths[num_steps] = count - before
            num_steps += 1
            if step_end == string_end or num_steps - steps_before == max_steps:
                break
            begin = step_end + len(step_separator)
        if is_sequence:
            steps[row] = num_steps - steps_before
    return count, num_steps


@kernel
def parse_numbers(strings: Any, values: Any, bad: Any) -> Any:
    """One number of each string: -1 where one is none, or where only a longer way would round it right."""
    data, starts, ends = strings
    for index in range(len(starts)):
        begin, end = _trim(data, starts[index], ends[index])
        negative, first = _sign(data, begin, end)
        digits, power, position, known = _decimal_digits(data, first, end)
        if known and position < end:
            exponent, known = _exponent(data, position, end)
            power += exponent
        if not known:
            return _fail(bad, index, starts[index], ends[index], NOT_A_NUMBER)[0]
        # Both factors are exact, so that one rounding gives the nearest double.
        if digits > np.uint64(1 << 53) or power < -22 or power > 22:
            return _fail(bad, index, starts[index], ends[index], NOT_EXACT)[0]
        value = digits / _POWERS[-power] if power < 0 else digits * _POWERS[power]
        values[index] = -value if negative else value
    return 0


@kernel
def format_integers(values: Any, data: Any, starts: Any, ends: Any) -> None:
    """Integers as decimal strings, one after the other; `data` has 20 bytes for each."""
    position = 0
    for index in range(len(values)):
        negative = values[index] < 0
        rest = ~np.uint64(values[index]) + np.uint64(1) if negative else np.uint64(values[index])
        num_digits, left = 1, rest // np.uint64(10)
        while left != np.uint64(0):
            num_digits, left = num_digits + 1, left // np.uint64(10)
        starts[index] = position
        if negative:
            data[position] = np.uint8(45)
            position += 1
        for place in range(num_digits - 1, -1, -1):
            data[position + place] = np.uint8(48) + np.uint8(rest % np.uint64(10))
            rest //= np.uint64(10)
        position += num_digits
        ends[index] = position


@kernel
def join(left: Any, right: Any, pairs: Any, glue: Any, out: Any) -> None:
    """String i is left[pairs[0, i]], `glue`, right[pairs[1, i]]; `out` is (data, starts, ends)."""
    left_data, left_starts, left_ends = left
    right_data, right_starts, right_ends = right
    data, starts, ends = out
    position = 0
    for index in range(len(starts)):
        starts[index] = position
        for byte in range(left_starts[pairs[0, index]], left_ends[pairs[0, index]]):
            data[position] = left_data[byte]
            position += 1
        for byte in range(len(glue)):
            data[position] = glue[byte]
            position += 1
        for byte in range(right_starts[pairs[1, index]], right_ends[pairs[1, index]]):
            data[position] = right_data[byte]
            position += 1
        ends[index] = position
