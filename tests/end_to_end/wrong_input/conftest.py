"""The desks of the commands, to make mistakes at."""

from tests.cli.conftest import desk, trained_desk, trained_run

__all__ = ["desk", "trained_desk", "trained_run"]
