"""Limits that are too small are told with the numbers, before the first step."""

import re

import pytest

from tests.cli.desk import Change, Desk

SIZE = r"[\d.]+[KMGT]iB"


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        pytest.param(
            (('user_id", num_buckets: 100', 'user_id", num_buckets: 1000000000'),),
            rf"model needs 59.6GiB but only {SIZE} of 8GiB are left \(process {SIZE}\); "
            "lower embedding sizes in feature_configs, or raise memory.limit",
            id="for the model",
        ),
        pytest.param(
            (("batch_size: 4", "batch_size: 400000000"),),
            rf"step needs {SIZE} but only {SIZE} of 8GiB are left \(process {SIZE}, model {SIZE}\); "
            "lower data_config.batch_size, or raise memory.limit",
            id="for a batch",
        ),
        pytest.param(
            (("batch_size: 4", "batch_size: 4\n  shuffle: true\n  shuffle_buffer: 16GiB"),),
            rf"shuffle needs {SIZE} but only {SIZE} of 8GiB are left "
            rf"\(process {SIZE}, model {SIZE}, step {SIZE}, evaluation metrics {SIZE}\); "
            "lower data_config.shuffle_buffer, or raise memory.limit",
            id="for the shuffle",
        ),
        pytest.param(
            (("limit: 8GiB", "limit: 100MiB"),),
            rf"memory.limit: is 100MiB, but python, torch and torchrec take {SIZE} just by being imported; raise it",
            id="for Python itself",
        ),
        pytest.param(
            (("limit: 8GiB", "limit: 1MiB"),),
            r"run.yaml: line 4, column 10: memory.limit: is 1048576 bytes; "
            r"a run needs at least 16MiB \(write sizes as 4GiB, 512MiB\)",
            id="for anything",
        ),
    ],
)
def test_a_limit_that_is_too_small(desk: Desk, changes: tuple[Change, ...], line: str) -> None:
    desk.write_run(*changes)
    before = desk.content()

    done = desk.penstock("train", "run.yaml")

    assert re.fullmatch(f"error: {line}\n", done.stderr), done.stderr
    assert done.exit_code == 1
    assert desk.content() == before
