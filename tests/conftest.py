"""Settings of the whole test run, and what tests of several packages need."""

import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from tests.expected_skips import fail_unexpected_skip

if TYPE_CHECKING:
    from tests.readers.object_store import ObjectStore

# Before torch is imported, and for every process that tests start: sums come out the same to the last bit wherever they
# are made, and the threads of tests that run beside each other do not wait for each other's cores.
os.environ["OMP_NUM_THREADS"] = "1"

# What a person or a CI service may have set for terminals: tests look at plain output.
for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "LINES"):
    os.environ.pop(name, None)

# Servers of tests listen on loopback, where no proxy can reach them.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"

# A property may be slow on a busy machine; pytest-timeout ends what really hangs.
settings.register_profile(
    "random",
    deadline=None,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile("fixed", settings.get_profile("random"), derandomize=True)

# Hypothesis also draws constants that it finds in the modules loaded so far: which those are depends on the tests that
# ran before in the same process, and so would the examples.
pytest.MonkeyPatch().setattr(providers, "_get_local_constants", providers.Constants)


def pytest_configure(config: pytest.Config) -> None:
    """Draw the same examples every time, unless a seed is given (`make test-all`)."""
    settings.load_profile("fixed" if config.getoption("--hypothesis-seed") is None else "random")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """In CI a skipped test fails: what nobody runs proves nothing."""
    report = yield
    if os.environ.get("CI"):
        fail_unexpected_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """The same where a whole file is skipped."""
    report = yield
    if os.environ.get("CI"):
        fail_unexpected_skip(report)
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call() -> None:
    """A command that ran in this process before showed its messages on a stream that is closed by now."""
    logger = logging.getLogger("penstock")
    logger.handlers, logger.propagate = [], True
    logger.setLevel(logging.NOTSET)


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
