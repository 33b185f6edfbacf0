"""What was written, and how good a model can get on it: printed, and kept as sample.json beside the files."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from penstock.config.errors import DataError

SUMMARY_NAME = "sample.json"


@dataclass(frozen=True, slots=True)
class LabelSummary:
    """One label. Binary ones have an attainable AUC, numeric ones an attainable root mean squared error.

    Choices among several have an attainable accuracy.
    """

    mean: float
    """For a binary label the base rate, for a choice the share of the most frequent one."""
    attainable_auc: float | None = None
    """None for other labels, and where all labels are equal."""
    attainable_rmse: float | None = None
    attainable_accuracy: float | None = None

    def describe(self) -> str:
        """One phrase for the user."""
        if self.attainable_accuracy is not None:
            return f"most frequent choice {self.mean:.4f}, attainable accuracy {self.attainable_accuracy:.4f}"
        if self.attainable_rmse is not None:
            return f"mean {self.mean:.2f}, attainable RMSE {self.attainable_rmse:.2f}"
        auc = (
            "unknown (all labels are equal)" if self.attainable_auc is None else f"{self.attainable_auc:.4f}"
        )
        return f"base rate {self.mean:.4f}, attainable AUC {auc}"


@dataclass(frozen=True, slots=True)
class SplitSummary:
    """One split: its files relative to the output directory, its rows, its labels."""

    files: tuple[str, ...]
    rows: int
    labels: Mapping[str, LabelSummary]


@dataclass(frozen=True, slots=True)
class SampleSummary:
    """Everything one needs to know about written sample data."""

    kind: str
    format: str
    seed: int
    rows: int
    planted: str
    """What the labels were drawn from."""
    labels: Mapping[str, LabelSummary]
    """Over all splits."""
    splits: Mapping[str, SplitSummary]

    def describe(self) -> str:
        """A few lines for the user."""
        lines = [f"{self.rows:,} rows of '{self.kind}' (seed {self.seed}, {self.format})"]
        for name, split in self.splits.items():
            lines.append(f"  {name}: {split.rows:,} rows in {len(split.files)} files")
            lines += [f"    {label}: {summary.describe()}" for label, summary in split.labels.items()]
        lines.append(f"  planted model: {self.planted}")
        return "\n".join(lines)

    def save(self, directory: Path) -> None:
        """Write sample.json."""
        (directory / SUMMARY_NAME).write_text(json.dumps(asdict(self), indent=2) + "\n")


def read_summary(directory: Path) -> SampleSummary:
    """The summary of sample data written before."""
    path = directory / SUMMARY_NAME
    try:
        content = json.loads(path.read_text())
        splits = {name: _split(split) for name, split in content.pop("splits").items()}
        return SampleSummary(**content | {"labels": _labels(content["labels"]), "splits": splits})
    except FileNotFoundError as error:
        raise DataError(
            f"{directory}: has no {SUMMARY_NAME}; it was not written by penstock sample-data"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: is not a summary of sample data ({error})") from error


def _split(content: Mapping[str, Any]) -> SplitSummary:
    return SplitSummary(tuple(content["files"]), content["rows"], _labels(content["labels"]))


def _labels(content: Mapping[str, Mapping[str, Any]]) -> dict[str, LabelSummary]:
    return {name: LabelSummary(**values) for name, values in content.items()}
