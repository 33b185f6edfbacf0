"""The profiler's own messages."""

import subprocess
import sys

import pytest

from penstock.runtime.profiler_messages import VARIABLE, silence_profiler

TRACE = """
from penstock.runtime.profiler_messages import silence_profiler
import torch
silence_profiler()
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
    torch.ones(2) + 1
"""


def test_what_a_user_has_set_stays():
    environment = {VARIABLE: "1"}

    silence_profiler(environment)

    assert environment == {VARIABLE: "1"}


@pytest.mark.slow
def test_a_trace_prints_nothing():
    done = subprocess.run([sys.executable, "-c", TRACE], capture_output=True, text=True, check=True)

    assert done.stdout + done.stderr == ""
