"""The desks of the commands, for the same things as functions."""

from tests.cli.conftest import desk, trained_desk, trained_run

__all__ = ["desk", "trained_desk", "trained_run"]
