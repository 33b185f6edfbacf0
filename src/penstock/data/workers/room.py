"""How much room to keep for a result, when only its record batch is known."""

LEAST_BYTES = 64 * 1024
"""Room for what does not grow with the batch."""
SLACK = 1.25
FADING = 0.9


class ResultRoom:
    """Learns from results how large they are against their batches: at once when they are larger, slowly when not."""

    def __init__(self, first_bytes: int) -> None:
        self._first_bytes = first_bytes
        self._ratio: float | None = None

    def for_result_of(self, batch_bytes: int) -> int:
        """Bytes to keep beside a batch; before the first result, what a batch and its result may take together."""
        if self._ratio is None:
            return max(LEAST_BYTES, self._first_bytes - batch_bytes)
        return LEAST_BYTES + int(SLACK * self._ratio * batch_bytes)

    def learn(self, batch_bytes: int, result_bytes: int) -> None:
        """See a result, whether there was room for it or not."""
        ratio = max(0, result_bytes - LEAST_BYTES) / batch_bytes
        if self._ratio is not None:
            ratio = max(ratio, FADING * self._ratio + (1 - FADING) * ratio)
        self._ratio = ratio
