"""The desks of the commands, to make mistakes at."""

import pytest

from tests.cli.conftest import desk, trained_desk, trained_run

__all__ = ["desk", "trained_desk", "trained_run"]

pytest.register_assert_rewrite("tests.end_to_end.wrong_input.mistake")
