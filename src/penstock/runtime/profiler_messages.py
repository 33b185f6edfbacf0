"""What the library behind torch.profiler prints on stderr by itself."""

import os
from collections.abc import MutableMapping

VARIABLE = "KINETO_LOG_LEVEL"
NOTHING = "6"
"""Above its highest level, under which it marks the start and the stop of each trace."""


def silence_profiler(environment: MutableMapping[str, str] = os.environ) -> None:
    """Ask it to print nothing, before its first use in this process; what a user has set stays."""
    environment.setdefault(VARIABLE, NOTHING)
