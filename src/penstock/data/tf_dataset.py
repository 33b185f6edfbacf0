"""A Dataset as a tf.data.Dataset. TensorFlow is an extra, and imported only here."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError, DataError
from penstock.data.arrow_numpy import Origin, Ragged, columns_of, is_float
from penstock.data.chain import ByRows, Chain
from penstock.data.dataset import Dataset


def tf_dataset(dataset: Dataset, chain: Chain, num_elements: int | None) -> Any:
    """Dicts of tensors with the types and shapes of the columns; each loop over it is one over the Dataset.

    `num_elements` is what every loop gives, where that is known: progress bars show it.
    """
    try:
        tf = import_module("tensorflow")
    except ImportError as error:
        raise ConfigError.at("to_tf", "TensorFlow is not installed; pip install 'penstock[tf]'") from error
    cut = chain.cut
    num_rows = cut.num_rows if isinstance(cut, ByRows) and cut.drop_remainder else None
    signature = {
        name: _spec(tf, value, cut is None, not chain.maps, num_rows)
        for name, value in _example(chain).items()
    }

    def elements() -> Iterator[dict[str, Any]]:
        for element in dataset:
            for name, value in element.items():
                if is_float(value) and (signature[name].dtype.is_integer or signature[name].dtype.is_bool):
                    problem = f"lacks values, which {signature[name].dtype.name} cannot say"
                    raise DataError.at(f"{problem}; say what to take: .fill_nulls({name}=...)", column=name)
            yield {name: _value(tf, value) for name, value in element.items()}

    result = tf.data.Dataset.from_generator(elements, output_signature=signature)
    return (
        result
        if num_elements is None
        else result.apply(tf.data.experimental.assert_cardinality(num_elements))
    )


def _example(chain: Chain) -> dict[str, Any]:
    """Something with the columns and types of a batch: what maps make of one, only trying tells."""
    if not chain.maps:
        empty = pa.RecordBatch.from_pylist([], schema=chain.schema())
        return dict(columns_of(empty, Origin(0, empty, ()), chain.shapes()))
    first = next(iter(Dataset(chain)), None)
    if first is None:
        raise DataError(
            f"{chain.source.name}: has no rows, so that nobody knows what the map gives; leave it out"
        )
    return dict(first)


def _spec(tf: Any, value: Any, is_row: bool, is_empty: bool, num_rows: int | None) -> Any:
    if isinstance(value, Ragged):
        depth, leaf = 1, value.values
        while isinstance(leaf, Ragged):
            depth, leaf = depth + 1, leaf.values
        if is_row and depth == 1:
            return tf.TensorSpec((None, *leaf.shape[1:]), _dtype(tf, leaf))
        shape = ([] if is_row else [num_rows]) + [None] * (depth - is_row) + list(leaf.shape[1:])
        return tf.RaggedTensorSpec(
            shape, _dtype(tf, leaf), ragged_rank=depth - is_row, row_splits_dtype=tf.int64
        )
    array = np.asarray(value)
    if is_row:
        return tf.TensorSpec(array.shape[1:] if is_empty else array.shape, _dtype(tf, array))
    return tf.TensorSpec((num_rows, *array.shape[1:]), _dtype(tf, array))


def _dtype(tf: Any, array: Any) -> Any:
    if array.dtype.kind in "OUS":
        return tf.string
    return tf.int64 if array.dtype.kind in "Mm" else tf.as_dtype(array.dtype)


def _value(tf: Any, value: Any) -> Any:
    """What TensorFlow takes: lists of different lengths as ragged tensors, times as integers, no value as ''."""
    if isinstance(value, Ragged):
        return tf.RaggedTensor.from_row_splits(_value(tf, value.values), value.offsets)
    array = np.asarray(value)
    if array.dtype.kind == "O":
        return np.where(array == None, "", array)  # noqa: E711 - element by element
    return array.astype(np.int64) if array.dtype.kind in "Mm" else array
