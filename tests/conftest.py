"""Settings of the whole test run, and what tests of several packages need."""

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from tests.readers.object_store import ObjectStore

# Before torch is imported, and for every process that tests start: sums come out the same to the last bit wherever they
# are made, and the threads of tests that run beside each other do not wait for each other's cores.
os.environ["OMP_NUM_THREADS"] = "1"

# A property may be slow on a busy machine; pytest-timeout ends what really hangs.
settings.register_profile("penstock", deadline=None, derandomize=True, database=None, print_blob=True)
settings.load_profile("penstock")


@pytest.fixture(scope="session")
def shared_store() -> Iterator["ObjectStore"]:
    """One S3-compatible server for all tests; each takes a bucket of its own."""
    from tests.readers.object_store import ObjectStore

    store = ObjectStore()
    yield store
    store.stop()


@pytest.fixture
def object_store(shared_store: "ObjectStore", monkeypatch: pytest.MonkeyPatch) -> "ObjectStore":
    """The server, with the environment pointing to it."""
    for name, value in shared_store.environment.items():
        monkeypatch.setenv(name, value)
    return shared_store
