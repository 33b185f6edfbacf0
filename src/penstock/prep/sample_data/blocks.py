"""What all kinds share: draws that depend on names and indices, and blocks of rows with what is true about them.

Every draw starts from `generator(seed, "clicks.rows", 17)`: the same seed, name and index give the same numbers, so a
block of rows can be made without those before it.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.config.registry import Registry

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Column: TypeAlias = "pa.Array[Any]"

BLOCK_ROWS = 16_384
"""Rows are drawn in whole blocks of this size, so that row i is the same wherever it is written."""
# An attainable AUC of about 0.83.
_MEAN_LOGIT, _LOGIT_SPREAD = -1.6, 1.65


def generator(seed: int, stream: str, index: int = 0) -> np.random.Generator:
    return np.random.default_rng((seed, zlib.crc32(stream.encode()), index))


def zipf_ids(rng: np.random.Generator, cardinality: int | IntArray, size: int) -> IntArray:
    """Ids below n, the cardinality; 0 is the most frequent: k has probability log((k+2)/(k+1)) / log(n+1).

    That is Zipf's law with exponent 1, in a form that is drawn without a table. Each row may have its own n.
    """
    log_end = np.log(np.asarray(cardinality, dtype=np.float64) + 1.0)
    ids = np.exp(rng.random(size) * log_end).astype(np.int64) - 1
    return np.minimum(ids, np.asarray(cardinality, dtype=np.int64) - 1)


def hashed_effects(ids: IntArray, key: int) -> FloatArray:
    """One number per id with mean 0 and variance 1, by hashing: any number of ids, nothing stored."""
    with np.errstate(over="ignore"):
        mixed = ids.astype(np.uint64) + np.uint64(key % 2**64)
        mixed *= np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    uniform = (mixed >> np.uint64(11)).astype(np.float64) * 2.0**-53
    effects: FloatArray = (uniform * 2.0 - 1.0) * 3.0**0.5
    return effects


def sigmoid(logits: FloatArray) -> FloatArray:
    return 1.0 / (1.0 + np.exp(-logits))


def product(left_NM: FloatArray, right_MK: FloatArray) -> FloatArray:
    """A matrix product that adds in the same order whatever the number of threads: draws hang on the last bit."""
    product_NK: FloatArray = np.einsum("nm,mk->nk", left_NM, right_MK, optimize=False)
    return product_NK


def or_zero(values: FloatArray) -> FloatArray:
    """The effect of a value that is missing (NaN) is nothing."""
    return np.where(np.isnan(values), 0.0, values)


def calibrator(raw_logits: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """Brings logits to the same middle and spread under every seed, measured on a block that is never written.

    The most frequent ids carry much of the weight of Zipf data, so what a seed draws for them would otherwise decide
    base rate and attainable AUC.
    """
    mean, spread = float(np.mean(raw_logits)), float(np.std(raw_logits))
    return lambda logits: _MEAN_LOGIT + (logits - mean) * (_LOGIT_SPREAD / spread)


def column(values: npt.NDArray[Any], kind: pa.DataType | None = None) -> Column:
    """One value per row, in the type given or in NumPy's own. NaN becomes null."""
    array = pa.array(values, from_pandas=True)
    return cast(Column, array if kind is None else array.cast(kind))


def words(codes: IntArray, vocabulary: Sequence[str]) -> Column:
    """One word per row; dictionary-encoded, which costs four bytes a row however long the words are."""
    return pa.DictionaryArray.from_arrays(column(codes, pa.int32()), pa.array(vocabulary))


def lists(offsets: IntArray, values: Column) -> Column:
    """One list per row: the values from its offset up to the next."""
    return pa.ListArray.from_arrays(cast(Any, column(offsets, pa.int32())), values)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows as a model sees them, and what the planted model knows about their labels."""

    rows: pa.RecordBatch
    probabilities: Mapping[str, FloatArray]
    """Binary label -> the probability with which each row's label was drawn as 1."""
    expectations: Mapping[str, FloatArray]
    """Numeric label -> the mean of the distribution from which each row's label was drawn."""

    def slice(self, start: int, stop: int) -> "Block":
        return Block(
            rows=self.rows.slice(start, stop - start),
            probabilities={label: values[start:stop] for label, values in self.probabilities.items()},
            expectations={label: values[start:stop] for label, values in self.expectations.items()},
        )

    def with_truth(self) -> pa.RecordBatch:
        """The rows with one more column `true_<label>_prob` per binary label."""
        rows = self.rows
        for label, values in self.probabilities.items():
            rows = rows.append_column(f"true_{label}_prob", pa.array(values))
        return rows


KINDS: Registry[Callable[[int], Any]] = Registry(
    "kind of sample data",
    {
        "clicks": "penstock.prep.sample_data.clicks:Clicks",
        "criteo": "penstock.prep.sample_data.criteo:Criteo",
        "game": "penstock.prep.sample_data.game:Game",
    },
)
"""Name -> a function from the seed to the kind, which says in `planted` what its labels are drawn from.

`block(index)` gives the rows from index * BLOCK_ROWS on, always BLOCK_ROWS of them. A raw kind has instead
`write(directory, num_rows, num_files, on_rows)`, which writes files of its `format` to its `folder` and gives their
SplitSummary: they are not split before they are prepared.
"""


def pieces(block: Callable[[int], Block], start: int, stop: int) -> Iterator[Block]:
    """The rows from start up to stop, at most a block at a time; `block` makes one from its index, and may cache it."""
    while start < stop:
        index, first = divmod(start, BLOCK_ROWS)
        last = min(first + stop - start, BLOCK_ROWS)
        yield block(index).slice(first, last)
        start += last - first
