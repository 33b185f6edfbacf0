"""The first signal is a request, the second stops at once, and the old handlers come back."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from penstock.runtime.world import stop_on_signal


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_the_first_signal_asks_to_stop_and_names_the_exit_code(number, exit_code):
    with stop_on_signal() as request:
        os.kill(os.getpid(), number)

        assert request
        assert request.signal_number == number
        assert request.exit_code == exit_code


def test_in_another_thread_no_request_ever_comes():
    seen = []

    def work():
        with stop_on_signal() as request:
            seen.append((bool(request), signal.getsignal(signal.SIGTERM)))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

    assert seen == [(False, before)]


TWO_SIGNALS = """
import os, signal
from penstock.runtime.world import stop_on_signal

try:
    with stop_on_signal():
        os.kill(os.getpid(), signal.SIGINT)
        print("goes on", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        print("not reached", flush=True)
finally:
    print("nor is this", flush=True)
"""


def test_the_second_signal_ends_the_process_at_once():
    ended = subprocess.run(
        [sys.executable, "-c", TWO_SIGNALS], capture_output=True, text=True, check=False, timeout=300
    )

    assert (ended.returncode, ended.stdout) == (143, "goes on\n")
