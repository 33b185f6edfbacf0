"""Parsed columns -> Batch: every value is copied once, straight to its final place.

F sparse features, B rows, V ids of all rows of all features, D numbers per row of all dense features.
"""

from functools import lru_cache

import numpy as np
import pyarrow as pa
import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor, KeyedTensor

from penstock.features.fast_path import PlainColumns
from penstock.features.feature import DenseColumn, NumberArray, SparseColumn, one_per_row
from penstock.features.parser import UNKNOWN_ROW, ParsedBatch, SideArray
from penstock.tensors.batch import BASE, Batch, Position
from penstock.tensors.record_batch import RecordBatchTensor

Packed = tuple[KeyedTensor | None, KeyedJaggedTensor | None]
"""The numbers and the ids of a batch, where it has any."""


def pack(
    parsed: ParsedBatch, reserves: pa.RecordBatch | None = None, file_paths: tuple[str, ...] = ()
) -> Batch:
    """The batch of one group of rows.

    `reserves` are columns that are only carried along, `file_paths` the files that row ids count.
    """
    dense, sparse = pack_columns(parsed) if parsed.plain is None else pack_plain(parsed.plain)
    origin_known = not len(parsed.row_ids) or parsed.row_ids[0] != UNKNOWN_ROW
    return Batch(
        dense_features={} if dense is None else {BASE: dense},
        sparse_features={} if sparse is None else {BASE: sparse},
        labels={name: _copied(values) for name, values in parsed.labels.items()},
        sample_weights={name: _copied(values) for name, values in parsed.sample_weights.items()},
        additional_infos={name: _copied(values) for name, values in parsed.side.items()},
        reserves=RecordBatchTensor(reserves),
        position=Position.of(parsed.row_ids, file_paths) if origin_known else None,
    )


def pack_plain(plain: PlainColumns) -> Packed:
    """The features of a batch that were brought to their place already; copied only out of shared memory."""
    dense = sparse = None
    if plain.number_names:
        numbers_BD = torch.from_numpy(_owned(plain.numbers_BD))
        dense = KeyedTensor(list(plain.number_names), [1] * len(plain.number_names), numbers_BD)
    if plain.id_names:
        num_features, num_rows = plain.ids_FB.shape
        sparse = KeyedJaggedTensor(
            keys=list(plain.id_names),
            values=torch.from_numpy(_owned(plain.ids_FB).reshape(-1)),
            lengths=_ones(num_features * num_rows),
            stride=num_rows,
            length_per_key=[num_rows] * num_features,
            offset_per_key=[num_rows * index for index in range(num_features + 1)],
        )
    return dense, sparse


def pack_columns(parsed: ParsedBatch) -> Packed:
    """Dense columns side by side in one (B, D) tensor, sparse ones one after the other."""
    sparse = {name: column for name, column in parsed.features.items() if isinstance(column, SparseColumn)}
    dense = {name: column for name, column in parsed.features.items() if isinstance(column, DenseColumn)}
    numbers = None
    if dense:
        widths = [column.values.shape[1] for column in dense.values()]
        values_BD = torch.empty((parsed.num_rows, sum(widths)), dtype=torch.float32)
        np.concatenate([column.values for column in dense.values()], axis=1, out=values_BD.numpy())
        numbers = KeyedTensor(list(dense), widths, values_BD)
    return numbers, pack_sparse(sparse, parsed.num_rows) if sparse else None


def pack_sparse(columns: dict[str, SparseColumn], num_rows: int) -> KeyedJaggedTensor:
    """Sparse columns one after the other in a KeyedJaggedTensor.

    If any column has weights the others weigh 1. Lengths are int32, torchrec's own default; the step is as fast
    with int64. The counts per feature are known here, so torchrec need not sum lengths to find them.
    """
    counts = [len(column.values) for column in columns.values()]
    ends = np.cumsum(counts, dtype=np.int64).tolist()
    values_V = torch.empty(ends[-1], dtype=torch.int64)
    # One id in every row of every feature is everyday: such batches share one tensor, which nobody may change.
    if all(column.lengths is one_per_row(num_rows) for column in columns.values()):
        lengths_FB = _ones(len(columns) * num_rows)
    else:
        lengths_FB = torch.empty(len(columns) * num_rows, dtype=torch.int32)
        np.concatenate([column.lengths for column in columns.values()], out=lengths_FB.numpy())
    weighted = any(column.weights is not None for column in columns.values())
    weights_V = torch.ones(ends[-1], dtype=torch.float32) if weighted else None
    values = values_V.numpy()
    for column, count, end in zip(columns.values(), counts, ends, strict=True):
        values[end - count : end] = column.values
        if weights_V is not None and column.weights is not None:
            weights_V.numpy()[end - count : end] = column.weights
    return KeyedJaggedTensor(
        keys=list(columns),
        values=values_V,
        lengths=lengths_FB,
        weights=weights_V,
        stride=num_rows,
        length_per_key=counts,
        offset_per_key=[0, *ends],
    )


@lru_cache(maxsize=4)
def _ones(size: int) -> torch.Tensor:
    return torch.ones(size, dtype=torch.int32)


def _owned(values: NumberArray) -> NumberArray:
    """The array itself where it is memory of its own, else a copy."""
    return values if values.flags.owndata else np.array(values)


def _copied(values: NumberArray | SideArray) -> torch.Tensor:
    """A tensor of its own: a view would keep the whole row group in memory."""
    return torch.from_numpy(np.array(values))
