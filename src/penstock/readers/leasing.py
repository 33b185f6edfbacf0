"""The bytes that a reader holds while it goes from block to block."""

from penstock.runtime.budget import Share


class RollingLease:
    """Leases the block in work, and of the one before it what may still be in use as views."""

    def __init__(self, share: Share) -> None:
        self._share = share
        self._held_bytes = 0
        self._retained_bytes = 0

    def move_on(self, needed_bytes: int, retained_bytes: int) -> None:
        """Take the bytes of the next block; of the present one only what it said it retains stays leased."""
        self._share.release(self._held_bytes - self._retained_bytes)
        self._held_bytes = self._retained_bytes
        self._share.acquire(needed_bytes)
        self._held_bytes += needed_bytes
        self._retained_bytes = retained_bytes

    def grow(self, num_bytes: int) -> bool:
        """Take more for the present block; False, and nothing taken, where the share does not have it."""
        if self._held_bytes + num_bytes > self._share.limit_bytes:
            return False
        self._share.acquire(num_bytes)
        self._held_bytes += num_bytes
        return True

    def close(self) -> None:
        """Give everything back; a second time does nothing."""
        self._share.release(self._held_bytes)
        self._held_bytes = self._retained_bytes = 0
