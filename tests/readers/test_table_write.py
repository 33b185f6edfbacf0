"""Tables on disk: whole, or not there."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.readers.table_write import write_output


def batches(*sizes, start=0):
    for size in sizes:
        yield pa.RecordBatch.from_pydict({"row": list(range(start, start + size)), "probs": [0.5] * size})
        start += size


def then_fail(source):
    yield from source
    raise ZeroDivisionError


def test_a_folder_of_parts_in_order_each_ended_by_the_batch_that_fills_it(tmp_path):
    write_output(tmp_path / "scores", batches(2, 2, 2, 1), "--predict_output_path", rows_per_part=3)

    parts = sorted((tmp_path / "scores").iterdir())
    assert [part.name for part in parts] == ["part-00000.parquet", "part-00001.parquet"]
    assert [pq.read_table(part)["row"].to_pylist() for part in parts] == [[0, 1, 2, 3], [4, 5, 6]]


@pytest.mark.parametrize("name", ["scores", "scores.parquet", "scores.csv"])
def test_what_fails_on_the_way_leaves_nothing(tmp_path, name):
    with pytest.raises(ZeroDivisionError):
        write_output(tmp_path / name, then_fail(batches(2)), "--predict_output_path")

    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_at_the_end_too_hides_neither_the_error_nor_leaves_anything(
    tmp_path, monkeypatch
):
    class FullDisk:
        def write_table(self, table):
            raise ZeroDivisionError

        def close(self):
            raise OSError(28, "No space left on device")

    monkeypatch.setattr("penstock.readers.table_write.open_writer", lambda *_: FullDisk())
    with pytest.raises(ZeroDivisionError):
        write_output(tmp_path / "scores", batches(1), "--predict_output_path")

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_swept_away_and_an_empty_folder_is_used(tmp_path):
    (tmp_path / "scores").mkdir()
    (tmp_path / ".scores.tmp").mkdir()
    (tmp_path / ".scores.tmp" / "part-00000.parquet").touch()

    write_output(tmp_path / "scores", batches(1), "--predict_output_path")

    assert [path.name for path in tmp_path.iterdir()] == ["scores"]


@pytest.mark.parametrize("name", ["scores", "scores.parquet"])
def test_no_rows(tmp_path, name):
    assert write_output(tmp_path / name, batches(), "--predict_output_path") == 0

    assert list(tmp_path.iterdir()) == []
