"""Processes that the user's code forks and that come back from it: nothing here is for them to go on with."""

import os


def end_fork_of(process_id: int) -> None:
    """End this process without a word where it is not that one but a copy of it."""
    if os.getpid() != process_id:
        os._exit(0)
