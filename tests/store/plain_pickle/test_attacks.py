"""Files that ask for everything get one line, and neither time nor memory."""

import json
import subprocess
import sys

import pytest

from tests.store.plain_pickle import attacks

MOST_SECONDS = 60.0
"""Of one core. Each takes a second or two; who does what such a file asks for takes hours, or never ends."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The line about each attack and the seconds it took, from a process that has little memory."""
    command = [sys.executable, attacks.__file__, str(tmp_path_factory.mktemp("attacks"))]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    found = map(json.loads, finished.stdout.splitlines())
    return {name: (line, seconds) for name, line, seconds in found}


@pytest.mark.parametrize(
    ("name", "said"), [(name, said) for name, (_, said) in attacks.ATTACKS.items()], ids=list(attacks.ATTACKS)
)
def test_it_is_one_line_soon_and_without_memory(answers, name, said):
    line, seconds = answers[name]

    assert said in line
    assert len(line.splitlines()) == 1
    assert seconds < MOST_SECONDS
