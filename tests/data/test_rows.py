"""Batches of a number of rows."""

import pyarrow as pa

from penstock.data.cut import RowCut, join
from tests.data.streams import stream_of_sizes
from tests.readers.samples import numbers


def test_the_last_batch_is_short_or_dropped() -> None:
    assert numbers(RowCut(stream_of_sizes([3]), 2)) == [[0, 1], [2]]
    assert numbers(RowCut(stream_of_sizes([3]), 2, drop_remainder=True)) == [[0, 1]]


def test_a_batch_inside_one_source_batch_is_a_view_of_it() -> None:
    source = stream_of_sizes([10])
    first, second = RowCut(source, 5)

    assert first.column("number").buffers()[1].address == second.column("number").buffers()[1].address
    assert second.column("number").offset == 5


def test_dictionaries_are_unified() -> None:
    first, second = (
        pa.RecordBatch.from_pydict({"word": pa.array(words).dictionary_encode()})
        for words in (["a", "b"], ["c", "a"])
    )

    assert join([first, second]).column("word").to_pylist() == ["a", "b", "c", "a"]
