"""Batches and results in shared memory."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.data.workers.arena import anonymous_file, map_arena
from penstock.data.workers.transport import (
    Borrowed,
    ResultTooLarge,
    Span,
    ViewKept,
    batch_bytes,
    read_batch,
    read_result,
    use_result,
    write_batch,
    write_result,
)

BATCH = pa.record_batch(
    {
        "number": pa.array([1, 2, None, 4], pa.int64()),
        "word": ["a", None, "ccc", ""],
        "list": [[1], [], None, [2, 3]],
        "dictionary": pa.array(["x", "y", "x", None]).dictionary_encode(),
    }
)


def arena(num_bytes=100_000):
    return map_arena(anonymous_file(num_bytes), num_bytes)


def written(batch, num_bytes=100_000):
    memory = arena(num_bytes)
    write_batch(batch, memory)
    return memory


@pytest.mark.parametrize("batch", [BATCH, BATCH.slice(1, 2), BATCH.slice(0, 0)], ids=["all", "slice", "none"])
def test_a_record_batch_comes_back(batch):
    memory = written(batch)

    assert read_batch(memory) == batch
    assert bytes(memory[batch_bytes(batch) :]).strip(b"\0") == b""


def test_arrays_that_are_views_of_the_batch_are_not_copied():
    batch = pa.record_batch({"x": np.arange(1000), "y": np.arange(1000) / 2})
    memory, size = written(batch), batch_bytes(batch)
    seen = read_batch(memory)

    result = {"x": seen["x"].to_numpy(), "half": seen["y"].to_numpy()[:500], "new": np.arange(7)}
    pickled, x, half, new = write_result(result, memory, size)

    assert x.num_bytes == 8000
    assert half.num_bytes == 4000
    assert max(x.begin, half.begin) < size < min(pickled.begin, new.begin)
    back = read_result(memory, [pickled, x, half, new])
    assert back["x"].tolist() == list(range(1000))
    assert back["half"].tolist() == (np.arange(500) / 2).tolist()
    assert back["new"].tolist() == list(range(7))


def test_arrays_that_are_not_contiguous():
    matrix = np.arange(12.0).reshape(3, 4)
    result = [matrix[:, 1], matrix[::-1], np.broadcast_to(np.int32(7), 1000), np.array(5), matrix[:0]]
    memory = arena()

    spans = write_result(result, memory, 0)

    assert sum(span.num_bytes for span in spans) < 1000, "a value that is repeated is written once"
    for back, value in zip(read_result(memory, spans), result, strict=True):
        assert back.dtype == value.dtype
        np.testing.assert_array_equal(back, value)


def test_a_record_batch_as_a_result():
    memory, size = written(BATCH), batch_bytes(BATCH)

    spans = write_result(read_batch(memory), memory, size)

    assert read_result(memory, spans) == BATCH


def test_a_result_that_does_not_fit_says_what_it_needs_and_writes_nothing():
    memory = arena(1000)

    with pytest.raises(ResultTooLarge) as caught:
        write_result(np.ones(1000), memory, 0)

    assert 8000 < caught.value.needed_bytes < 8500
    assert bytes(memory).strip(b"\0") == b""


def test_a_result_has_memory_of_its_own_unless_it_is_used_in_place():
    memory, size = written(BATCH), batch_bytes(BATCH)
    spans = write_result(np.arange(3), memory, size)
    own = read_result(memory, spans)
    copied = use_result(memory, spans, lambda array, batch: (array.copy(), batch.num_rows))

    memory[:] = bytes(len(memory))

    assert own.tolist() == copied[0].tolist() == [0, 1, 2]
    assert copied[1] == 4


def test_keeping_a_view_is_told_at_once():
    memory, size = written(BATCH), batch_bytes(BATCH)
    spans = write_result(np.arange(3), memory, size)
    kept = []

    with pytest.raises(ViewKept, match="copy what is needed longer than the batch"):
        use_result(memory, spans, lambda array, _: kept.append(array))


def test_views_in_objects_that_refer_to_each_other_are_let_go():
    circle = {}
    with Borrowed(arena()) as borrowed:
        circle["array"] = np.frombuffer(borrowed.part(Span(0, 8)))
        circle["self"] = circle
        del circle
