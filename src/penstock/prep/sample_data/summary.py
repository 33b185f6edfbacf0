"""What was written, and how good a model can get on it: printed, and kept as sample.json beside the files.

Labels are drawn with known probabilities from what the columns show, so no model can rank rows better than the
probabilities themselves, up to chance. They are scored while rows are written, in a fixed number of bytes.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from penstock.config.errors import DataError

SUMMARY_NAME = "sample.json"
_NUM_BINS = 1 << 18


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
    def labels(content: Mapping[str, Mapping[str, Any]]) -> dict[str, LabelSummary]:
        return {name: LabelSummary(**values) for name, values in content.items()}

    path = directory / SUMMARY_NAME
    try:
        content = json.loads(path.read_text())
        splits = {
            name: SplitSummary(tuple(split["files"]), split["rows"], labels(split["labels"]))
            for name, split in content.pop("splits").items()
        }
        return SampleSummary(**content | {"labels": labels(content["labels"]), "splits": splits})
    except FileNotFoundError as error:
        raise DataError(
            f"{directory}: has no {SUMMARY_NAME}; it was not written by penstock sample-data"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: is not a summary of sample data ({error})") from error


class AttainableAuc:
    """AUC of the true probabilities against the drawn labels.

    Probabilities are counted in 2^18 bins, apart for both labels (4 MiB). Rows that share a bin count as
    ties, which changes the AUC by less than 1e-5.
    """

    def __init__(self) -> None:
        self.sums = np.zeros((2, _NUM_BINS), dtype=np.int64)

    def update(self, probabilities: npt.NDArray[np.float64], labels: npt.NDArray[np.int64]) -> None:
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

    def update(self, expectations: npt.NDArray[np.float64], values: npt.NDArray[Any]) -> None:
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

    def update(self, probabilities_NK: npt.NDArray[np.float64], labels_N: npt.NDArray[np.int64]) -> None:
        self._counts += np.bincount(labels_N, minlength=len(self._counts))
        self._num_best += int((probabilities_NK.argmax(axis=1) == labels_N).sum())

    def summarize(self) -> LabelSummary:
        total = max(self._counts.sum(), 1)
        largest_share = float(self._counts.max() / total)
        return LabelSummary(largest_share, attainable_accuracy=float(self._num_best / total))
