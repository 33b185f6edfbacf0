"""What a Dataset begins with: arrays, and files of every format."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest

import penstock
from tests.data.dataset.samples import cases, numbered_file, rows


@pytest.mark.parametrize(
    "arrays",
    [
        {"x": np.arange(3), "y": np.arange(3)},
        {"x": [0, 1, 2], "y": (0, 1, 2)},
        {"x": pa.array([0, 1, 2]), "y": pa.chunked_array([[0], [1, 2]])},
        pa.table({"x": [0, 1, 2], "y": [0, 1, 2]}),
        pa.record_batch({"x": [0, 1, 2], "y": [0, 1, 2]}),
    ],
    ids=["NumPy", "lists", "Arrow", "table", "record batch"],
)
def test_arrays_of_any_kind(arrays):
    [batch] = penstock.from_arrays(arrays).batch(3)

    assert (batch["x"].tolist(), batch["y"].tolist()) == ([0, 1, 2], [0, 1, 2])


def test_images_in_a_store_keep_their_axes(tmp_path):
    images = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.save(tmp_path / "image.npy", images)

    [batch] = penstock.read_store(tmp_path).batch(2)

    assert np.array_equal(batch["image"], images)


REFUSALS = """
penstock.read_parquet(path, columns=["ax"])
    there is no column 'ax'; did you mean 'x'?
penstock.read_parquet(path, columns=[])
    no column is wanted; name some
penstock.read_parquet([path, path])
    numbered.parquet is named twice; its rows would be read
penstock.read_parquet([])
    no data path is given
penstock.read_parquet(f"{path}x")
    no such file or directory; did you mean
penstock.read_store(path)
    is no directory; a store is a directory of .npy files
penstock.read_csv(path, types={"x": "int46"})
    types: has the unknown type 'int46'; did you mean
penstock.read_csv(path, delimiter=";;")
    delimiter: is ';;'; columns are separated by one
penstock.read_csv(path, header=False)
    types=: must name the columns of
penstock.read_store(5)
    paths: 5 is no path; give a text or a pathlib.Path
penstock.read_csv(path, types={"x": int})
    types: of 'x' is <class 'int'>; write it as a text, such as 'int64'
penstock.read_tfrecord(path, schema={})
    schema: names no feature; leave it out
penstock.from_arrays([[1, 2], [3, 4]])
    from_arrays: this is an object of type list; give a dict of arrays, such as
penstock.from_arrays(pa.table([[1], [2]], names=["x", "x"]))
    arrays in memory: column 'x': stands 2 times in this table
penstock.from_arrays({"x": (number for number in range(3))})
    column 'x': is an object of type generator; give a NumPy array, a list or an Arrow array
penstock.from_arrays({"x": [1, "a"]})
    column 'x': is no array
penstock.from_arrays({"x": np.zeros(3), "y": np.zeros(4)})
    column 'x' has 3 rows but column 'y' has 4; arrays that are read together need equal lengths
"""


@pytest.mark.parametrize(("call", "message"), cases(REFUSALS))
def test_what_is_wrong_is_told_where_it_is_said(tmp_path, call, message):
    with pytest.raises(penstock.PenstockError) as told:
        eval(call, {"penstock": penstock, "np": np, "pa": pa, "path": numbered_file(tmp_path, 3)})

    assert message in str(told.value)
    assert "data_config" not in str(told.value)


def test_a_chain_can_be_sent_to_another_process(tmp_path):
    dataset = penstock.read_parquet(numbered_file(tmp_path, 20)).shuffle("1KiB").batch(8).to_torch()

    sent = pickle.loads(pickle.dumps(dataset))  # noqa: S301 - our own bytes

    assert rows(batch_of(sent)) == rows(batch_of(dataset))


def batch_of(dataset):
    return ({name: column.numpy() for name, column in batch.items()} for batch in dataset)
