"""Ctrl-C and SIGTERM: the first asks to finish the step and save, the second stops at once."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from penstock.config.errors import PenstockError


class StopRequest:
    signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM: what shells expect."""
        return 128 + (self.signal_number or 0)


class Stopped(PenstockError):
    def __init__(self, message: str, request: StopRequest) -> None:
        super().__init__(f"stopped: {message}")
        self.exit_code = request.exit_code


@contextmanager
def stop_on_signal(at_once: bool = False) -> Iterator[StopRequest]:
    """Turn the first signal into a request; restore the old handlers on the way out.

    `at_once`: it also raises KeyboardInterrupt, for work that may be left anywhere. Signals reach the main thread only:
    in another one, a request never comes.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handle(number: int, _: FrameType | None) -> None:
        if request:
            os._exit(128 + number)
        request.signal_number = number
        if at_once:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
