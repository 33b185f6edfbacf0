"""The rows of a shuffle window, whatever their types."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.data import window as store_columns
from penstock.data.window import RowStore, window_bytes

NUMBERS = st.none() | st.integers(-5, 5)
COLUMNS: dict[str, tuple[pa.DataType, st.SearchStrategy]] = {
    "int64": (pa.int64(), NUMBERS),
    "uint8": (pa.uint8(), st.none() | st.integers(0, 255)),
    "float32": (pa.float32(), NUMBERS),
    "half": (pa.float16(), st.none() | st.integers(-5, 5).map(np.float16)),
    "date": (pa.date32(), st.none() | st.integers(0, 9)),
    "timestamp": (pa.timestamp("us"), st.none() | st.integers(0, 9)),
    "boolean": (pa.bool_(), st.none() | st.booleans()),
    "text": (pa.string(), st.none() | st.text(max_size=3)),
    "list": (pa.list_(pa.int64()), st.none() | st.lists(NUMBERS, max_size=3)),
    "fixed list": (pa.list_(pa.float32(), 2), st.none() | st.lists(NUMBERS, min_size=2, max_size=2)),
    "words": (pa.dictionary(pa.int32(), pa.string()), st.none() | st.sampled_from(["a", "b"])),
    "decimal": (pa.decimal128(9, 2), st.none() | st.integers(0, 9)),
    "map": (pa.map_(pa.string(), pa.int64()), st.none() | st.just([("a", 1)])),
}
SCHEMA = pa.schema([(name, kind) for name, (kind, _) in COLUMNS.items()])


@st.composite
def pieces(draw: st.DrawFn) -> list[pa.RecordBatch]:
    """Record batches of all types, some of them views into larger ones."""
    found = []
    for num_rows in draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)):
        skipped = draw(st.integers(0, 3))
        columns = [
            pa.array(draw(st.lists(values, min_size=num_rows + skipped, max_size=num_rows + skipped)), kind)
            for kind, values in COLUMNS.values()
        ]
        found.append(pa.RecordBatch.from_arrays(columns, schema=SCHEMA).slice(skipped))
    return found


@settings(max_examples=60)
@given(windows=st.lists(pieces(), min_size=1, max_size=3), data=st.data())
def test_rows_come_out_in_the_wanted_order_window_after_window(
    windows: list[list[pa.RecordBatch]], data: st.DataObject
) -> None:
    most_rows = max(sum(piece.num_rows for piece in window) for window in windows)
    store = RowStore(SCHEMA, most_rows)
    for window in windows:
        expected = pa.Table.from_batches(window).to_pylist()
        order = np.array(data.draw(st.permutations(range(len(expected)))), np.int64)
        for piece in window:
            store.append(piece)
        store.permute(order)
        cut = data.draw(st.integers(0, len(expected)))
        first, rest = store.rows(0, cut), store.rows(cut, len(expected))

        assert first.to_pylist() + rest.to_pylist() == [expected[row] for row in order]
        rest.validate(full=True)


def test_a_dictionary_that_pieces_share_is_not_counted_for_each() -> None:
    words = pa.array([f"word {number:06}" for number in range(10_000)])
    pieces = [
        pa.RecordBatch.from_arrays(
            [pa.DictionaryArray.from_arrays(pa.array([1, 2], pa.int32()), words)], ["word"]
        )
        for _ in range(50)
    ]
    store = RowStore(pieces[0].schema, 100)
    for piece in pieces:
        store.append(piece)

    assert store.permute(np.arange(100)) == 100 * 4
    assert store.rows(0, 2).column("word").to_pylist() == ["word 000001", "word 000002"]


def test_texts_beyond_a_chunk_are_drawn_from_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_columns, "_CHUNK_BYTES", 60)
    store = RowStore(pa.schema([("text", pa.string())]), 30)
    for i in range(3):
        store.append(pa.RecordBatch.from_pydict({"text": [f"{i}-{j}" for j in range(10)]}))
    order = np.random.default_rng(0).permutation(30)
    store.permute(order)

    assert store.rows(0, 30).column("text").to_pylist() == [f"{row // 10}-{row % 10}" for row in order]
    assert len(store._columns[0].chunks) == 3


@settings(max_examples=60)
@given(window=pieces(), names=st.sets(st.sampled_from(list(COLUMNS)), min_size=1), data=st.data())
def test_a_store_takes_no_more_than_was_told_before(
    window: list[pa.RecordBatch], names: set[str], data: st.DataObject
) -> None:
    table = pa.Table.from_batches(window).select(sorted(names)).combine_chunks()
    num_rows, rows = table.num_rows, table.to_batches()
    row_bytes = -(-sum(batch.nbytes for batch in rows) // num_rows)
    store = RowStore(table.schema, num_rows)
    for piece in rows:
        store.append(piece)
    num_bytes = store.permute(np.array(data.draw(st.permutations(range(num_rows))), np.int64))

    assert num_bytes <= window_bytes(table.schema, num_rows, row_bytes)
