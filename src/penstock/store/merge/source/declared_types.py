"""Types of numbers that the user declared, for samples that have none of their own yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.store.schema import FEATURES, LABELS, ArraySpec, StoreSchema


@dataclass(frozen=True)
class DeclaredTypes:
    """Of the arrays that old files of pickled samples become; what is absent is as in the first sample."""

    features: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    """By head."""
    masks: str | None = None

    def applied(self, schema: StoreSchema) -> StoreSchema:
        """The same arrays with the types that were declared."""
        unknown = next((head for head in self.labels if head not in schema.heads), None)
        if unknown is not None:
            raise ConfigError.at(
                "schema.labels", f"there is no head '{unknown}'; {hint(unknown, schema.heads)}"
            )
        return StoreSchema(tuple(self._applied(spec, schema) for spec in schema.arrays), schema.names)

    def check(self, schema: StoreSchema, path: Path) -> None:
        """Refuse arrays of other types than were declared: their bytes are merged as they are."""
        difference = self.applied(schema).difference(schema)
        if difference:
            raise ConfigError(
                f"{path}: {difference}, as schema or dtype say; arrays keep their types in a merge: leave these out, "
                "or write the batch files again"
            )

    def _applied(self, spec: ArraySpec, schema: StoreSchema) -> ArraySpec:
        part, head = schema.names.place(spec.name)
        if part == FEATURES:
            declared = self.features
        elif head is None:
            declared = None
        else:
            declared = self.labels.get(head) if part == LABELS else self.masks
        return spec if declared is None else replace(spec, dtype=np.dtype(declared))
