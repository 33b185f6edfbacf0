"""Settings of the whole test run."""

from hypothesis import settings

# A property may be slow on a busy machine; pytest-timeout ends what really hangs.
settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
