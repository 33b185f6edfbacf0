"""What a field of a section can say about itself, beyond its type.

A marker stands in `Annotated` and speaks only when a run file really writes the field:

    quota: Annotated[str, Ignored("Penstock has no quotas")] = ""
    dlrm: Annotated[Dlrm | None, Later("the model dlrm")] = None
    kafka: Annotated[bool, Refused("Kafka is not supported")] = False
    fg_encoded: Annotated[bool, Legacy("fg_mode")] = True
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ignored:
    """The field is accepted and has no effect; it is listed once, and is an error in strict mode."""

    reason: str


@dataclass(frozen=True, slots=True)
class Later:
    """The field is checked, but what it asks for is not available yet.

    It speaks when the field is written with another value than its default or, where `values` are given,
    with one of these. Training then stops, unless the marker is `harmless`: the run gives the same model
    without it, and a warning is enough.
    """

    what: str
    harmless: bool = False
    values: tuple[str, ...] = ()

    def speaks(self, value: object, default: object) -> bool:
        """Whether this value of the field asks for what is not available yet."""
        return value in self.values if self.values else value != default


@dataclass(frozen=True, slots=True)
class Refused:
    """Writing the field is an error."""

    reason: str


@dataclass(frozen=True, slots=True)
class Legacy:
    """The field works, with a warning that names the key to use instead."""

    new_name: str


Marker = Ignored | Later | Refused | Legacy
