"""Compiled loops over the buffers of Arrow string columns.

A text column is `data` (its UTF-8 bytes) and `offsets` (text i is data[offsets[i]:offsets[i + 1]]). Each
kernel splits the texts, turns every token into a number and writes values and lengths in one pass. Nothing
raises in here: a token that cannot be used is described in `bad` (text index, begin, end, reason) and the
kernel returns -1.

Importing this module imports numba (about 110 MB), so only `penstock.features.text` does, when a text
column of ids is really parsed.
"""

from typing import Any

import numpy as np

from penstock.runtime.kernels import kernel

PARSE_INTEGER, HASH = 0, 1  # how a token becomes an id (penstock.features.text.Rule); else it is looked up
NOT_AN_INTEGER, NOT_A_WEIGHT, NO_KEY = 0, 1, 2  # why a token cannot be used

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
def _fail(bad: Any, text: Any, begin: Any, end: Any, reason: Any) -> Any:
    bad[0], bad[1], bad[2], bad[3] = text, begin, end, reason
    return -1


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
def encode_ids(text: Any, separator: Any, rule: Any, num_buckets: Any, vocabulary: Any, out: Any) -> Any:
    """Splits texts into tokens and tokens ("key", or "key:weight") into ids; empty tokens count for nothing.

    `text` is (data, offsets), `vocabulary` (slots, their ids, key_data, key_offsets) and `out` (values,
    lengths, weights, bad); tokens have weights if `out` has space for them. Gives the number of values. Long,
    because handing these tuples on to a function for each token would cost several times the work.
    """
    data, offsets = text
    slots, slot_ids, key_data, key_offsets = vocabulary
    values, lengths, weights, bad = out
    weighted = len(weights) > 0
    count = 0
    for row in range(len(offsets) - 1):
        begin, text_end, before = offsets[row], offsets[row + 1], count
        while begin < text_end:
            end = _find(data, begin, text_end, separator)
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
                    values[count] = np.int64(xxh64(data, key_begin, key_end) % np.uint64(num_buckets))
                else:
                    slot = _slot(data, key_begin, key_end, slots, key_data, key_offsets)
                    values[count] = slot_ids[slot]
                if not known:
                    return _fail(bad, row, begin, end, NOT_AN_INTEGER)
                count += 1
            elif weighted and key_end < end:
                return _fail(bad, row, begin, end, NO_KEY)
            begin = end + max(len(separator), 1)
        lengths[row] = count - before
    return count
