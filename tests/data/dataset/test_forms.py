"""Batches as NumPy arrays or as record batches."""

import numpy as np
import pyarrow as pa

import penstock
from penstock.data.arrow_numpy import Ragged
from tests.data.dataset.samples import numbered

TABLE = pa.table({"name": ["ann", "bob", None], "clicks": [[1, 2], [], [3]], "y": [1, 2, 3]})


def test_record_batches_of_what_a_map_gave():
    def longer(batch):
        matrix = np.arange(12, dtype=np.float32).reshape(3, 2, 2)
        return {"y": batch["y"] + 1, "matrix": matrix, "clicks": batch["clicks"], "name": batch["name"]}

    [batch] = penstock.from_arrays(TABLE).batch(3).map(longer).to_arrow()

    assert batch["y"].to_pylist() == [2, 3, 4]
    assert batch["matrix"].to_pylist() == [[[0, 1], [2, 3]], [[4, 5], [6, 7]], [[8, 9], [10, 11]]]
    assert batch["clicks"].to_pylist() == [[1, 2], [], [3]]
    assert batch["name"].to_pylist() == ["ann", "bob", None]


def test_the_form_stays_when_more_is_said():
    [batch, *_] = numbered(4).batch(2).to_arrow().take(1)

    assert isinstance(batch, pa.RecordBatch)


def test_a_table_can_be_written_and_read_again(tmp_path):
    paths = penstock.write_tfrecord(
        tmp_path / "clicks.tfrecord", penstock.from_arrays(TABLE).batch(2).to_arrow()
    )

    [batch] = penstock.read_tfrecord(paths, schema={"clicks": ("int64", "any"), "y": "int64"}).batch(3)

    assert isinstance(batch["clicks"], Ragged)
    assert batch["clicks"].tolist() == [[1, 2], [], [3]]
    assert batch["y"].tolist() == [1, 2, 3]
