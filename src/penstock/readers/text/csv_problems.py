"""What Arrow says about a bad record of CSV, in words that name the column and what to do."""

import re
from collections.abc import Sequence

from penstock.readers.text.parsing import BadRecord

_PLACE = re.compile(
    r"(?:In CSV column #(?P<column>\d+): )?(?:CSV parse error: )?Row #(?P<row>\d+): (?P<problem>.*)", re.S
)
_BAD_VALUE = re.compile(r"CSV conversion error to (?P<type>.+?): invalid value '(?P<value>.*)'", re.S)
_BAD_WIDTH = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+)")


def explain(message: str, names: Sequence[str]) -> BadRecord:
    """Which record is meant, counted from 0 in the text that was read, and what is wrong with it."""
    place = _PLACE.match(message)
    if place is None:
        return BadRecord(f"cannot be read as CSV: {message}")
    record = int(place["row"]) - 1
    column = names[int(place["column"])] if place["column"] else None
    bad_value, bad_width = _BAD_VALUE.match(place["problem"]), _BAD_WIDTH.match(place["problem"])
    if bad_value:
        problem = (
            f"is not {bad_value['type']}; correct it, or declare another type in data_config.input_fields"
        )
        return BadRecord(problem, record, column, bad_value["value"])
    if bad_width:
        problem = (
            f"has {bad_width['found']} columns, not {bad_width['expected']}; is data_config.delimiter right?"
        )
        return BadRecord(problem, record)
    return BadRecord(place["problem"], record, column)
