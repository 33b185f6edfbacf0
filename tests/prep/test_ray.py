"""Tasks on a Ray cluster of this machine."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.config.errors import ConfigError
from penstock.prep.prepare import prepare
from penstock.prep.tasks import FileFailed
from penstock.runtime.worker_process import WorkerError
from tests.prep.raw import content, section, write_games


def test_without_the_library_one_line_says_what_to_install(desk: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    write_games(desk / "raw", [2])

    with pytest.raises(ConfigError) as error:
        prepare(section(desk, parallel=True, executor="ray"))

    assert str(error.value) == (
        "preprocessing.executor: ray needs the library: pip install 'penstock[ray]'; or set executor: local"
    )


@pytest.fixture
def ray(desk: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A cluster of two cores; its workers find the module as a user's would."""
    library = pytest.importorskip("ray")
    monkeypatch.setattr("penstock.prep.tasks._MIN_TASK_BYTES", 1)
    monkeypatch.setenv("PYTHONPATH", str(desk), prepend=":")
    library.init(num_cpus=2, include_dashboard=False, configure_logging=False, log_to_driver=False)
    yield library
    library.shutdown()


@pytest.mark.slow
def test_the_bytes_are_those_of_one_process(desk: Path, ray: Any):
    del ray
    games = write_games(desk / "raw", [3, 9, 0, 5, 4])
    prepare(section(desk))

    summary = prepare(section(desk, parallel=True, executor="ray", intermediate_dir=str(desk / "others")))

    assert (summary.num_workers, summary.num_samples) == (2, 21)
    assert content(desk / "others") == content(desk / "batches")
    games[1].write_text("0 1 2 what\n")
    ray_again = section(desk, parallel=True, executor="ray", intermediate_dir=str(desk / "failing"))
    with pytest.raises(FileFailed, match=r"game_1\.txt: sample 0: 'rawgame:samples' failed: ValueError"):
        prepare(ray_again)
    skipping = section(
        desk, parallel=True, executor="ray", intermediate_dir=str(desk / "failing"), on_error="skip"
    )
    assert [*prepare(skipping).left_out] == [str(games[1])]


@pytest.mark.slow
def test_a_killed_task_is_done_once_more_and_then_reported(desk: Path, ray: Any):
    del ray
    games = write_games(desk / "raw", [3, 1])
    games[1].write_text("die-once 1 2 3\n")
    on_ray = section(desk, parallel=True, executor="ray")

    assert prepare(on_ray).num_samples == 4
    games[1].write_text("die 1 2 3\n")
    reason = r"game_1\.txt: a worker process ended on Ray with WorkerCrashedError at this file for the second time; "
    with pytest.raises(WorkerError, match=reason):
        prepare(on_ray, restart=True)
    skipping = prepare(section(desk, parallel=True, executor="ray", on_error="skip"))
    assert (skipping.num_samples, [*skipping.left_out]) == (3, [str(games[1])])
