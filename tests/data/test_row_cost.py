"""What a row costs, from a column or from the lengths of its sequences."""

import re
from typing import Any

import pyarrow as pa
import pytest

from penstock.config.errors import DataError
from penstock.data.row_cost import SequenceLength, cost_of_expression

NUMBERS = pa.list_(pa.int64())


def lengths(values: list[Any], kind: pa.DataType, **options: Any) -> list[int]:
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["seq"])
    length = SequenceLength("seq", **options)
    length.check(batch.schema)
    assert length.of(batch.slice(1)).tolist() == length.of(batch).tolist()[1:]
    return length.of(batch).tolist()


@pytest.mark.parametrize(
    "kind",
    [
        NUMBERS,
        pa.list_view(pa.int64()),
        pa.list_(pa.list_(pa.int8())),
    ],
    ids=str,
)
def test_a_list_is_as_long_as_it_has_elements(kind: pa.DataType) -> None:
    assert lengths([[None, None], [], None, [None] * 3], kind) == [2, 0, 0, 3]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary()], ids=str)
def test_a_text_has_a_step_more_than_separators(kind: pa.DataType) -> None:
    assert lengths(["3|4;5", "6", "", None, ";"], kind) == [2, 1, 0, 0, 2]


def test_the_separator_of_a_text_may_be_any_text_or_none() -> None:
    assert lengths(["1,2,3", "", "4"], pa.string(), separator=",") == [3, 0, 1]
    assert lengths(["1::2", "1:2", None], pa.string(), separator="::") == [2, 1, 0]
    assert lengths(["1;2", ""], pa.string(), separator="") == [1, 0]


def test_steps_past_the_longest_sequence_do_not_count() -> None:
    assert lengths([[1] * 5, [1], None], NUMBERS, longest=3) == [3, 1, 0]


def test_a_number_has_no_length() -> None:
    with pytest.raises(DataError) as caught:
        lengths([1], pa.int64())
    assert str(caught.value) == (
        "column 'seq': is of type int64; only lists and texts of several steps have a length"
    )


def test_lengths_are_put_together_row_by_row() -> None:
    batch = pa.RecordBatch.from_pydict({"clicks": [[1, 2], [], [3]], "carts": ["a|b|c", None, "d"]})
    sequences = {"cart_feature": SequenceLength("carts", "|")}
    total = cost_of_expression("sum_of_lengths(clicks, cart_feature)", sequences)
    longest = cost_of_expression("max_of_lengths( cart_feature , clicks )", sequences)

    assert total.columns == ("clicks", "carts")
    assert total.name == "sum_of_lengths(clicks, cart_feature)"
    assert total.of(batch).tolist() == [5, 0, 2]
    assert longest.of(batch).tolist() == [3, 0, 1]


EXAMPLE = "write it like sum_of_lengths(clicks, carts)"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sum_of_length(a)", "there is no function 'sum_of_length'; did you mean 'sum_of_lengths'?"),
        ("sum_of_lengths(a) + 1", f"'sum_of_lengths(a) + 1' is no expression over lengths; {EXAMPLE}"),
        ("sum_of_lengths(a,)", f"'sum_of_lengths(a,)' lacks the name of a sequence; {EXAMPLE}"),
        ("sum_of_lengths(a, a)", "'sum_of_lengths(a, a)' names 'a' twice"),
    ],
)
def test_an_expression_that_means_nothing(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(problem)}$"):
        cost_of_expression(text)
