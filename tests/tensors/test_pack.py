from dataclasses import replace

import numpy as np
import pyarrow as pa
import torch

from penstock.features.parser import NO_ROW_ID, ParsedBatch
from penstock.features.values import DenseColumn, SparseColumn
from penstock.tensors.loader import pack


def sparse(values, lengths, weights=None):
    weights = None if weights is None else np.array(weights, np.float32)
    return SparseColumn(np.array(values, np.int64), np.array(lengths, np.int32), weights)


def dense(*rows):
    return DenseColumn(np.array(rows, np.float32))


def parsed(num_rows=3, labels=None, weights=None, row_ids=None, **features):
    ids = np.full(num_rows, NO_ROW_ID) if row_ids is None else np.array(row_ids, np.int64)
    return ParsedBatch(features, labels or {}, weights or {}, ids, num_rows)


def test_sparse_columns_become_one_keyed_jagged_tensor():
    batch = pack(parsed(a=sparse([1, 2, 3], [2, 0, 1]), b=sparse([7, 8, 9], [1, 1, 1])))

    ids = batch.sparse_features["base"]
    assert ids.keys() == ["a", "b"]
    assert ids.values().tolist() == [1, 2, 3, 7, 8, 9]
    assert ids.values().dtype == torch.int64
    assert ids.lengths().tolist() == [2, 0, 1, 1, 1, 1]
    assert ids.length_per_key() == [3, 3]
    assert ids.weights_or_none() is None
    assert ids["a"].to_dense()[0].tolist() == [1, 2]


def test_weighted_ids_are_kept_apart():
    batch = pack(parsed(a=sparse([1, 2, 3], [2, 0, 1], [0.5, 1.5, 2.0]), b=sparse([7], [0, 1, 0])))

    assert batch.sparse_features["base"].weights_or_none() is None
    assert batch.sparse_features["base"].keys() == ["b"]
    assert batch.weighted_sparse_features["base"]["a"].weights().tolist() == [0.5, 1.5, 2.0]


def test_dense_columns_become_one_keyed_tensor():
    batch = pack(parsed(2, x=dense([1], [2]), v=dense([3, 4], [5, 6])))

    numbers = batch.dense_features["base"]
    assert numbers.keys() == ["x", "v"]
    assert numbers.length_per_key() == [1, 2]
    assert numbers.values().tolist() == [[1, 3, 4], [2, 5, 6]]
    assert numbers["v"].tolist() == [[3, 4], [5, 6]]


def test_labels_and_weights_are_copies_with_their_types():
    label = np.array([1, 0, 1])
    label.flags.writeable = False

    batch = pack(parsed(labels={"click": label}, weights={"w": np.array([1, 2, 3], np.float32)}))

    assert batch.labels["click"].dtype == torch.int64
    assert batch.labels["click"].data_ptr() != label.ctypes.data
    assert batch.sample_weights["w"].tolist() == [1.0, 2.0, 3.0]
    assert batch.sample_weights["w"].dtype == torch.float32


def test_the_position_is_an_interval_or_all_row_ids():
    in_order = pack(parsed(x=dense([1], [2], [3]), row_ids=[5, 6, 7])).position
    shuffled = pack(parsed(x=dense([1], [2], [3]), row_ids=[7, 5, 6])).position

    assert (in_order.first, in_order.num_rows, in_order.scattered) == (5, 3, None)
    assert in_order.row_ids().tolist() == [5, 6, 7]
    assert str(in_order) == "rows 5 to 7 of file 0"
    assert str(shuffled) == "3 scattered rows, the first of them row 7 of file 0"
    assert shuffled.row_ids().tolist() == [7, 5, 6]
    assert pack(parsed(x=dense([1], [2], [3]))).position is None
    second_file = parsed(x=dense([1], [2]), num_rows=2, row_ids=[(1 << 40) | row for row in (5, 6)])
    named = pack(second_file, file_paths=("clicks-0.parquet", "clicks-1.parquet")).position
    assert str(named) == "rows 5 to 6 of clicks-1.parquet"


def test_reserved_columns_are_carried_along():
    reserves = pa.record_batch({"id": ["a", "b", "c"]})

    assert pack(parsed(x=dense([1], [2], [3])), reserves).reserves.get() == reserves
    assert pack(parsed(x=dense([1], [2], [3]))).reserves.get() is None


def test_labels_that_are_lists_are_jagged():
    labels = {"picks": (np.array([1, 0, 1]), np.array([2, 0, 1], np.int32))}

    batch = pack(replace(parsed(), jagged_labels=labels))

    assert batch.jagged_labels["picks"].to_dense()[0].tolist() == [1, 0]
    assert batch.num_rows == 3
    assert batch.to_dict()["picks.lengths"].tolist() == [2, 0, 1]
