"""Reading a run file with what the command line says."""

from pathlib import Path

import pytest

from penstock.config.errors import ConfigError
from penstock.run.run_file import load_run, load_run_of_command


@pytest.fixture
def run_file(tmp_path) -> Path:
    path = tmp_path / "run.yaml"
    path.write_text("model_dir: run\ndata_config: {batch_size: 4, odps_data_quota_name: fast}\n")
    return path


def test_edits_as_a_mapping_or_as_a_list(run_file):
    by_mapping = load_run(run_file, {"data_config.batch_size": 8, "model_dir": "other"})
    by_list = load_run(str(run_file), ["data_config.batch_size=8", "model_dir=other"])

    assert by_mapping == by_list
    assert (by_list.data_config.batch_size, by_list.model_dir) == (8, "other")


def test_options_then_sets_then_json_with_values_that_may_hold_anything(run_file):
    run = load_run_of_command(
        run_file,
        {"model_dir": "by path", "train_input_path": "by path", "eval_input_path": "by path"},
        ["train_input_path=a=b;c,d e", "eval_input_path=by set"],
        '{"eval_input_path": "by json"}',
    )

    assert (run.model_dir, run.train_input_path, run.eval_input_path) == ("by path", "a=b;c,d e", "by json")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("{oops", "--edit_config_json: is not JSON: Expecting property name enclosed in double quotes: "),
        ("[1]", "--edit_config_json: expected one JSON object of path: value"),
    ],
)
def test_edits_that_are_no_json_object(run_file, text, line):
    with pytest.raises(ConfigError) as caught:
        load_run_of_command(run_file, {}, edit_json=text)

    assert str(caught.value).startswith(line)


def test_what_has_no_effect_is_warned_of_and_with_strict_refused(run_file, caplog):
    load_run_of_command(run_file, {})

    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "data_config.odps_data_quota_name: ignored"
    ]
    with pytest.raises(ConfigError, match=r"data_config.odps_data_quota_name: is ignored: "):
        load_run_of_command(run_file, {}, strict=True)


def test_an_edit_of_one_length_takes_the_place_of_the_other(desk):
    train = load_run(desk.folder / "run.yaml", {"train_config.num_steps": 2}).train_config

    assert (train.num_steps, train.num_epochs) == (2, None)


def test_both_lengths_are_an_error(desk):
    desk.write_run(("num_epochs: 1", "num_epochs: 1\n  num_steps: 2"))

    with pytest.raises(ConfigError, match="only one of num_steps, num_epochs may be set; both are"):
        load_run(desk.folder / "run.yaml")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((None,), "load_run: expected the path of a run file, not None"),
        (({"model_dir": "run"},), "load_run: expected the path of a run file, not {'model_dir': 'run'}"),
        (
            ("run.yaml", 5),
            "load_run: edits are a mapping of paths to values or a list of 'PATH=VALUE', not 5",
        ),
    ],
)
def test_what_is_no_path_and_no_edit_is_told(arguments, told):
    with pytest.raises(ConfigError) as caught:
        load_run(*arguments)

    assert str(caught.value) == told
