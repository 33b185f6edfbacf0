"""What it means that something can stop and go on: the contract of everything that a checkpoint holds."""

from typing import Any, Protocol

State = dict[str, Any]
"""A place one can come back to: plain numbers, strings, lists and mappings, ready for JSON."""


class Resumable(Protocol):
    """Anything that can say where it is and be put back there."""

    def state_dict(self) -> State:
        """The place after the last thing that was given out."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Go to a place that `state_dict` gave."""
        ...
