"""Reading a run file with what the command line says."""

from pathlib import Path

import pytest

from penstock.cli.command import load
from penstock.config.errors import ConfigError
from penstock.run.run_config import load_run


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


def test_edits_that_are_no_json(run_file):
    with pytest.raises(ConfigError, match=r"^--edit_config_json: is not JSON: Expecting property name"):
        load(run_file, {}, edit_json="{oops")


def test_what_has_no_effect_is_warned_of_and_with_strict_refused(run_file, caplog):
    load(run_file, {})

    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        "data_config.odps_data_quota_name: ignored"
    ]
    with pytest.raises(ConfigError, match=r"data_config.odps_data_quota_name: is ignored: "):
        load(run_file, {}, strict=True)


def test_what_is_no_path_and_no_edit_is_refused():
    with pytest.raises(
        ConfigError, match=r"^load_run: expected the path of a run file, a mapping or YAML, not None$"
    ):
        load_run(None)
    with pytest.raises(ConfigError, match=r"^load_run: edits are a mapping of paths to values or a list of"):
        load_run("run.yaml", 5)
