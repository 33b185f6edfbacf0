"""What all kinds share: draws that depend on names and indices, blocks of rows, and how good a model can get on them.

Every draw starts from `generator(seed, "clicks.rows", 17)`: the same seed, name and index give the same numbers, so a
block of rows can be made without those before it. Labels are drawn with known probabilities from what the columns show,
so no model can rank rows better than the probabilities themselves, up to chance. They are scored while rows are
written, in a fixed number of bytes, and kept as sample.json beside the files.
"""

import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pydantic import TypeAdapter

from penstock.config.errors import DataError
from penstock.config.registry import Registry

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Column: TypeAlias = "pa.Array[Any]"

BLOCK_ROWS = 16_384
"""Rows are drawn in whole blocks of this size, so that row i is the same wherever it is written."""
SUMMARY_NAME = "sample.json"
_NUM_BINS = 1 << 18
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


# --- What a model can reach -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """One label: binary ones have an attainable AUC, numeric ones an RMSE, choices among several an accuracy."""

    mean: float
    """For a binary label the base rate, for a choice the share of the most frequent one."""
    attainable_auc: float | None = None
    """None for other labels, and where all labels are equal."""
    attainable_rmse: float | None = None
    attainable_accuracy: float | None = None

    def describe(self) -> str:
        if self.attainable_accuracy is not None:
            return f"most frequent choice {self.mean:.4f}, attainable accuracy {self.attainable_accuracy:.4f}"
        if self.attainable_rmse is not None:
            return f"mean {self.mean:.2f}, attainable RMSE {self.attainable_rmse:.2f}"
        auc = self.attainable_auc
        shown = "unknown (all labels are equal)" if auc is None else f"{auc:.4f}"
        return f"base rate {self.mean:.4f}, attainable AUC {shown}"


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One split: its files relative to the output directory, its rows, its labels."""

    files: tuple[str, ...]
    rows: int
    labels: Mapping[str, LabelSummary]


@dataclass(frozen=True, slots=True)
class SampleSummary:
    kind: str
    format: str
    seed: int
    rows: int
    planted: str
    """What the labels were drawn from."""
    labels: Mapping[str, LabelSummary]
    splits: Mapping[str, SplitSummary]

    def describe(self) -> str:
        lines = [f"{self.rows:,} rows of '{self.kind}' (seed {self.seed}, {self.format})"]
        for name, split in self.splits.items():
            lines.append(f"  {name}: {split.rows:,} rows in {len(split.files)} files")
            lines += [f"    {label}: {summary.describe()}" for label, summary in split.labels.items()]
        lines.append(f"  planted model: {self.planted}")
        return "\n".join(lines)

    def save(self, directory: Path) -> None:
        (directory / SUMMARY_NAME).write_text(json.dumps(asdict(self), indent=2) + "\n")


def read_summary(directory: Path) -> SampleSummary:
    path = directory / SUMMARY_NAME
    try:
        return TypeAdapter(SampleSummary).validate_json(path.read_bytes())
    except FileNotFoundError as error:
        raise DataError(
            f"{directory}: has no {SUMMARY_NAME}; it was not written by penstock sample-data"
        ) from error
    except ValueError as error:
        reason = str(error).partition("\n")[0]
        raise DataError(f"{path}: is not a summary of sample data ({reason})") from error


class AttainableAuc:
    """AUC of the true probabilities against the drawn labels.

    Probabilities are counted in 2^18 bins, apart for both labels (4 MiB). Rows that share a bin count as
    ties, which changes the AUC by less than 1e-5.
    """

    def __init__(self) -> None:
        self.sums = np.zeros((2, _NUM_BINS), dtype=np.int64)

    def update(self, probabilities: FloatArray, labels: IntArray) -> None:
        bins = np.minimum((probabilities * _NUM_BINS).astype(np.int64), _NUM_BINS - 1)
        for label in (0, 1):
            self.sums[label] += np.bincount(bins[labels == label], minlength=_NUM_BINS)

    def summarize(self) -> LabelSummary:
        negatives, positives = self.sums
        rate = float(positives.sum() / max(self.sums.sum(), 1))
        num_pairs = int(negatives.sum()) * int(positives.sum())
        if num_pairs == 0:
            return LabelSummary(rate)
        negatives_below = np.cumsum(negatives) - negatives
        ordered_pairs = np.dot(positives.astype(np.float64), negatives_below + 0.5 * negatives)
        return LabelSummary(rate, attainable_auc=float(ordered_pairs / num_pairs))


class AttainableError:
    """Root mean squared error of the true means against the drawn values: the smallest a model can have."""

    def __init__(self) -> None:
        self.sums = np.zeros(3)

    def update(self, expectations: FloatArray, values: npt.NDArray[Any]) -> None:
        exact = values.astype(np.float64)
        self.sums += [len(exact), exact.sum(), np.square(exact - expectations).sum()]

    def summarize(self) -> LabelSummary:
        num_rows, sum_values, sum_squared_errors = self.sums.tolist()
        num_rows = max(num_rows, 1)
        return LabelSummary(sum_values / num_rows, attainable_rmse=(sum_squared_errors / num_rows) ** 0.5)


class AttainableAccuracy:
    """How often the likeliest of several choices is the one that was drawn: no guess is right more often."""

    def __init__(self, num_choices: int) -> None:
        self._counts = np.zeros(num_choices, dtype=np.int64)
        self._num_best = 0

    def update(self, probabilities_NK: FloatArray, labels_N: IntArray) -> None:
        self._counts += np.bincount(labels_N, minlength=len(self._counts))
        self._num_best += int((probabilities_NK.argmax(axis=1) == labels_N).sum())

    def summarize(self) -> LabelSummary:
        total = max(self._counts.sum(), 1)
        largest_share = float(self._counts.max() / total)
        return LabelSummary(largest_share, attainable_accuracy=float(self._num_best / total))
