"""The sample data and the undisturbed run that faults are held against."""

from tests.end_to_end.conftest import sample_clicks, trained

__all__ = ["sample_clicks", "trained"]
