"""Problems that a validator finds below the section it belongs to.

A validator that raises ValueError complains about its whole section. One that looks at several fields, or at
sections below, knows better where the problem stands:

    raise_findings(self, [Finding(("feature_configs", 3, "id_feature", "embedding_dim"), "is 8; ...")])

All findings reach the user, each with its own path, line and column.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import BaseModel, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from penstock.config.paths import KeyPath


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem, and where it stands below the section that found it: keys of the file, and indices.

    `excuses` is a place about which nothing more needs to be said.
    """

    place: KeyPath
    message: str
    excuses: KeyPath | None = None


def raise_findings(section: BaseModel, findings: Iterable[Finding]) -> None:
    """Raises one validation error that holds every finding; does nothing when there is none."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError("finding", "{message}", {"message": finding.message}),
            loc=finding.place,
            input=None,
        )
        for finding in findings
    ]
    if details:
        raise ValidationError.from_exception_data(type(section).__name__, details)
