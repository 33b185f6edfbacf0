"""Why a record cannot be used, as one line that names file, record, feature and what to do."""

from dataclasses import dataclass

from penstock.readers.tfrecord.locate import (
    DATA_CHECK,
    IN_PARTS,
    LENGTH_CHECK,
    NOT_AN_EXAMPLE,
    NOT_ONE_VALUE,
    OTHER_KIND,
    TORN,
)
from penstock.readers.tfrecord.wire import BYTES_KIND, FLOAT_KIND, INT64_KIND

KIND_NAMES = {BYTES_KIND: "bytes", FLOAT_KIND: "floats", INT64_KIND: "int64s"}
DECLARE = "declare its type in a schema, or in the input_fields of a run file"
_AGAIN = "copy or write the file again"


@dataclass(eq=False)
class UnusableRecord(Exception):
    """A record, or one feature of it, that cannot be used; rows are counted from the start of some bytes."""

    row: int
    problem: str
    column: int = -1
    """-1: the whole record."""
    is_frame: bool = False
    """Whether it cannot even be told where the next record begins."""


def of_failure(failure: list[int], kinds: list[int]) -> UnusableRecord:
    """What a kernel described; `kinds` are those that the columns must have."""
    reason, row, column, number = failure
    if reason == LENGTH_CHECK:
        return UnusableRecord(
            row, f"its length fails its checksum, the file is damaged; {_AGAIN}", is_frame=True
        )
    if reason == TORN:
        return UnusableRecord(row, f"the file ends inside it, it was cut short; {_AGAIN}", is_frame=True)
    if reason == DATA_CHECK:
        return UnusableRecord(row, f"its data fails its checksum, the file is damaged; {_AGAIN}")
    if reason == OTHER_KIND:
        found, expected = KIND_NAMES[number], KIND_NAMES[kinds[column]]
        return UnusableRecord(
            row, f"holds {found}, not {expected} as declared or as in other records; {DECLARE}", column
        )
    if reason == NOT_ONE_VALUE:
        return UnusableRecord(
            row, f"holds {number} values, not one as declared or as in other records; {DECLARE}", column
        )
    if reason == IN_PARTS:
        return UnusableRecord(
            row, f"a feature stands in parts, as no protobuf library writes it; {_AGAIN}", column
        )
    assert reason == NOT_AN_EXAMPLE, reason
    return UnusableRecord(row, "is not a tf.train.Example; no other message can be read", column)
