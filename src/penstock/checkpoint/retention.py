"""Which checkpoints may go when a new one has been written."""

from collections.abc import Collection


def stale(steps: Collection[int], keep: int, protected: Collection[int] = ()) -> list[int]:
    """The steps to remove: all but the newest `keep` and the protected ones; a `keep` of 0 keeps everything.

    >>> stale([10, 20, 30, 40], keep=2, protected=[10])
    [20]
    """
    if keep <= 0:
        return []
    return [step for step in sorted(steps)[:-keep] if step not in protected]
