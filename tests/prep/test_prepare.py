"""From raw files to batch files, again and again."""

import sys
from pathlib import Path

import numpy as np
import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.prepare import prepare
from penstock.prep.state_folder import StateFolder
from penstock.prep.tasks import FileFailed
from penstock.readers.store_schema import StoreManifest
from tests.prep.raw import content, events, prepared_arrays, section, write_games


def log_events(folder: Path, event: str) -> list[dict]:
    return [line for line in events(folder) if line["event"] == event]


def one_file_per_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.prep.tasks._MIN_TASK_BYTES", 1)


def test_samples_become_arrays_in_batches(desk: Path):
    write_games(desk / "raw", [3, 0, 7])

    summary = prepare(section(desk))

    assert (summary.num_files, summary.num_samples, summary.num_batches) == (3, 10, 3)
    arrays = prepared_arrays(desk / "batches")
    assert {name: (array.dtype.name, array.shape) for name, array in arrays.items()} == {
        "strategic_features": ("float32", (10, 3)),
        "labels_action": ("int16", (10,)),
        "masks_action": ("int8", (10, 4)),
    }
    assert arrays["strategic_features"][:, 2].tolist() == [0.5, 1.5, 2.5] + [2000.5 + row for row in range(7)]
    assert arrays["labels_action"].tolist() == [0, 1, 2, 0, 1, 2, 3, 0, 1, 2]
    np.testing.assert_array_equal(arrays["masks_action"], np.eye(4)[arrays["labels_action"]])
    manifest = StoreManifest.read(desk / "batches")
    assert [batch.num_samples for batch in manifest.batches] == [4, 4, 2]
    assert [entry.num_samples for entry in manifest.inputs] == [3, 0, 7]


@pytest.mark.parametrize(
    ("keys", "suffix", "dtype"),
    [
        ({"layout": "npz", "compression": "zlib"}, ".npz", "float32"),
        ({"use_float32": False}, ".batch", "float64"),
        ({"dtype": "float16"}, ".batch", "float16"),
    ],
)
def test_layouts_and_types(desk: Path, keys: dict, suffix: str, dtype: str):
    write_games(desk / "raw", [5])

    summary = prepare(section(desk, **keys))

    assert (desk / "batches" / f"batch_00000_00000{suffix}").exists()
    assert prepared_arrays(desk / "batches")["strategic_features"].dtype == dtype
    assert summary.largest_errors == ({"strategic_features": 0.0} if dtype == "float16" else {})


def test_splits_by_file_end_batches_where_files_end(desk: Path):
    write_games(desk / "raw", [3, 6])

    prepare(section(desk, splits={"by": "file"}))

    assert [batch.num_samples for batch in StoreManifest.read(desk / "batches").batches] == [3, 4, 2]


def test_what_is_done_is_kept(desk: Path, monkeypatch: pytest.MonkeyPatch):
    one_file_per_task(monkeypatch)
    games = write_games(desk / "raw", [3, 5, 4])
    prepare(section(desk))
    undisturbed = content(desk / "batches")
    (desk / "batches" / "tasks" / "task_00001.json").unlink()
    (desk / "batches" / "manifest.json").unlink()
    (desk / "batches" / ".batch_00001_00000.batch.ab12.partial").write_bytes(b"torn")
    (desk / "batches" / "batch_00001_00005.batch").write_bytes(b"left over")

    summary = prepare(section(desk))

    assert content(desk / "batches") == undisturbed
    assert (summary.kept_tasks, summary.num_tasks, summary.new_samples) == (2, 3, 5)
    done_again = [line["path"] for line in log_events(desk / "batches", "file")[3:]]
    assert done_again == [str(games[1])]


def test_what_was_begun_in_vain_may_begin_with_other_settings(desk: Path):
    write_games(desk / "raw", [3])

    with pytest.raises(FileFailed, match="has 3 values, not 4"):
        prepare(section(desk, schema={"num_features": 4}))

    assert (desk / "batches" / "preparation.json").exists()
    assert prepare(section(desk, schema={"num_features": 3})).num_samples == 3


def test_what_is_done_may_be_kept_after_the_function_was_mended(desk: Path, monkeypatch: pytest.MonkeyPatch):
    one_file_per_task(monkeypatch)
    games = write_games(desk / "raw", [3, 5, 4])
    games[1].write_text("0 1 2 3\n1 1 2 what\n")
    with pytest.raises(FileFailed):
        prepare(section(desk))

    module = desk / "rawgame.py"
    mended = 'float(value) for value in seen if value != "what"] + [7.0] * ("what" in seen)'
    module.write_text(module.read_text().replace("float(value) for value in seen]", mended))
    keys = {"parallel": True, "num_workers": 1}
    with pytest.raises(DataError) as error:
        prepare(section(desk, **keys))
    assert str(error.value) == (
        f"{desk}/batches: the module of extract ({desk}/rawgame.py) was changed since it was begun; go on with "
        "--keep-done, which keeps what the text before has made and does the rest with this one, or start over with "
        "--restart"
    )
    summary = prepare(section(desk, **keys), keep_done=True)

    assert (summary.num_samples, summary.kept_tasks) == (9, 1)
    assert prepared_arrays(desk / "batches")["strategic_features"][4].tolist() == [1, 2, 7]
    assert prepare(section(desk, **keys)).kept_tasks == 3


def test_other_inputs_are_noticed(desk: Path):
    games = write_games(desk / "raw", [3, 2])
    prepare(section(desk))
    before = games[1].read_text()

    games[1].write_text(before.replace("1 1 1", "2 1 1"))
    with pytest.raises(DataError, match=r"something else: input .*game_1\.txt has changed; put it back"):
        prepare(section(desk))
    games[1].write_text(before + "1 1 1 1\n")
    with pytest.raises(DataError, match=r"input .*game_1\.txt had 26 bytes and has 34; put it back"):
        prepare(section(desk))


def test_two_at_once_are_refused(desk: Path):
    write_games(desk / "raw", [3])
    with (
        StateFolder(desk / "batches").locked(),
        pytest.raises(ConfigError, match="another penstock prep is writing to it; wait for it"),
    ):
        prepare(section(desk))


def test_many_files_that_fail_are_found_in_one_go(desk: Path):
    games = write_games(desk / "raw", [3] * 20)
    for game in games[5:15]:
        game.write_text("0 1 2 3\n0 what\n")

    summary = prepare(section(desk, on_error="skip"))

    assert [*summary.left_out] == [str(game) for game in games[5:15]]
    assert summary.num_samples == 30
    assert len(sys.modules["rawgame"].TOUCHED) == 1 + 20 + 10


def test_nothing_to_prepare(desk: Path):
    write_games(desk / "raw", [0, 0])

    with pytest.raises(
        DataError, match=r"game_0\.txt: neither this file nor any other of the 2 gives a sample$"
    ):
        prepare(section(desk))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("rawgame", "preprocessing.extract: is 'rawgame'; write it as \"package.module:function\""),
        (
            "rawgmae:samples",
            "extract 'rawgmae:samples': there is no module 'rawgmae'; is its folder on PYTHONPATH?",
        ),
        ("rawgame:smaples", "extract 'rawgame:smaples': 'rawgame' has no 'smaples'"),
        (
            "rawgame:not_a_function",
            "preprocessing.extract: 'rawgame:not_a_function' is 3; name a function that takes a path",
        ),
    ],
)
def test_functions_that_are_not_there(desk: Path, place: str, message: str):
    write_games(desk / "raw", [1])

    with pytest.raises(ConfigError) as error:
        prepare(section(desk, extract=place))

    assert str(error.value).startswith(message)


def test_a_declared_schema_is_enforced(desk: Path):
    games = write_games(desk / "raw", [2])

    prepare(section(desk, schema={"labels": {"action": "int32"}}))
    assert prepared_arrays(desk / "batches")["labels_action"].dtype == np.int32
    for schema, problem in (
        ({"num_features": 4}, "sample 0: features: has 3 values, not 4"),
        ({"masks": {"action": 5}}, "sample 0: masks: head 'action': has 4 values, not 5"),
        ({"labels": {"target": "int16"}}, "sample 0: labels: head 'target' is missing"),
    ):
        with pytest.raises(FileFailed) as error:
            prepare(section(desk, schema=schema), restart=True)
        assert str(error.value) == f"{games[0]}: {problem}"
