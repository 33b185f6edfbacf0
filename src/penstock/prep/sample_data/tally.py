"""Keeps the attainable scores of every label while rows go by."""

from dataclasses import dataclass, field

import numpy as np

from penstock.prep.sample_data.attainable import AttainableAuc, AttainableError
from penstock.prep.sample_data.block import Block
from penstock.prep.sample_data.summary import LabelSummary


@dataclass(slots=True)
class Tally:
    """The scores of one split, or of all."""

    aucs: dict[str, AttainableAuc] = field(default_factory=dict)
    errors: dict[str, AttainableError] = field(default_factory=dict)

    def update(self, block: Block) -> None:
        """Count the labels of some rows."""
        for label, probabilities in block.probabilities.items():
            values = block.rows.column(label).to_numpy()
            self.aucs.setdefault(label, AttainableAuc()).update(probabilities, values)
        for label, expectations in block.expectations.items():
            numbers = block.rows.column(label).to_numpy().astype(np.float32)
            self.errors.setdefault(label, AttainableError()).update(expectations, numbers)

    def merge(self, other: "Tally") -> None:
        """Add what another one counted."""
        for label, auc in other.aucs.items():
            self.aucs.setdefault(label, AttainableAuc()).merge(auc)
        for label, error in other.errors.items():
            self.errors.setdefault(label, AttainableError()).merge(error)

    def summarize(self) -> dict[str, LabelSummary]:
        """One summary per label."""
        binary = {
            label: LabelSummary(auc.rate(), attainable_auc=auc.compute()) for label, auc in self.aucs.items()
        }
        numeric = {
            label: LabelSummary(error.mean(), attainable_rmse=error.compute())
            for label, error in self.errors.items()
        }
        return binary | numeric
