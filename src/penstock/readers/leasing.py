"""The bytes that a reader holds while it goes from block to block."""

from penstock.runtime.budget import Share


class RollingLease:
    """Leases the block in work, and of the one before it what may still be in use as views.

    Whether a block may grow depends on the block alone and not on the one before it, so that a run that continues
    decides as the first one did: `max_needed_bytes` is for the block in work, the rest for what is retained.
    """

    def __init__(self, share: Share, max_needed_bytes: int | None = None) -> None:
        self._share = share
        self._most_needed_bytes = share.limit_bytes if max_needed_bytes is None else max_needed_bytes
        self._held_bytes = 0
        self._needed_bytes = 0
        self._retained_bytes = 0

    def move_on(self, needed_bytes: int, retained_bytes: int) -> None:
        """Take the bytes of the next block; of the present one only what it said it retains stays leased."""
        self._share.release(self._held_bytes - self._retained_bytes)
        self._held_bytes = self._retained_bytes
        self._share.acquire(needed_bytes)
        self._held_bytes += needed_bytes
        self._needed_bytes = needed_bytes
        self._retained_bytes = retained_bytes

    @property
    def max_needed_bytes(self) -> int:
        """What the block in work may hold, whatever the one before it retains."""
        return self._most_needed_bytes

    def change(self, needed_bytes: int, retained_bytes: int) -> None:
        """Go on with the present block, of which nothing was given out yet, as if these were its bytes."""
        extra_bytes = needed_bytes - self._needed_bytes
        if extra_bytes > 0:
            self._share.acquire(extra_bytes)
        else:
            self._share.release(-extra_bytes)
        self._held_bytes += extra_bytes
        self._needed_bytes = needed_bytes
        self._retained_bytes = retained_bytes

    def grow(self, num_bytes: int, retained_bytes: int = 0) -> bool:
        """Take more for the present block, and retain a part of it; False, and nothing taken: it is too much."""
        most_retained_bytes = self._share.limit_bytes - self._most_needed_bytes
        if self._needed_bytes + num_bytes > self._most_needed_bytes:
            return False
        if retained_bytes and self._retained_bytes + retained_bytes > most_retained_bytes:
            return False
        self._share.acquire(num_bytes)
        self._held_bytes += num_bytes
        self._needed_bytes += num_bytes
        self._retained_bytes += retained_bytes
        return True

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._share.release(self._held_bytes)
        self._held_bytes = self._needed_bytes = self._retained_bytes = 0
