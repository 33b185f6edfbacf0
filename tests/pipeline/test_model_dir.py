"""What lies where in a model_dir, and what is refused before anything is written."""

import json
import os

import pytest

from penstock.config.errors import CheckpointError, ConfigError
from penstock.pipeline.model_dir import ModelDir, installed_versions


def test_every_file_has_its_place(tmp_path):
    folder = ModelDir.of(str(tmp_path))

    assert folder.run_file == tmp_path / "run.yaml"
    assert folder.version_file == tmp_path / "version"
    assert folder.checkpoints == tmp_path / "checkpoints"
    assert folder.log.path == tmp_path / "log.jsonl"
    assert folder.evaluations.path == tmp_path / "eval_result.jsonl"


def test_a_run_without_a_folder():
    with pytest.raises(
        ConfigError, match=r"^model_dir: is required by this command; set it, or give --model_dir$"
    ):
        ModelDir.of("")


def test_a_folder_that_can_be_made_is_not_made_yet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    ModelDir.of("deep/down/run").require_writable()
    ModelDir.of(str(tmp_path / "run")).require_writable()

    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named_as_it_was_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes").touch()

    with pytest.raises(ConfigError, match=r"^model_dir: 'notes' is a file; choose another folder$"):
        ModelDir.of("notes/run").require_writable()


def test_a_folder_that_is_not_ours_to_write(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)

    with pytest.raises(ConfigError, match=rf"^model_dir: no permission to write in '{tmp_path}'$"):
        ModelDir(tmp_path / "run").require_writable()


def test_a_trained_run_is_not_trained_again(tmp_path):
    folder = ModelDir(tmp_path)
    folder.refuse_if_trained()
    (folder.checkpoints / "step-10").mkdir(parents=True)

    with pytest.raises(
        CheckpointError, match=r"holds a trained run already; continue it with --continue_train, or"
    ):
        folder.refuse_if_trained()


def test_a_run_without_checkpoints_is_not_trained(tmp_path):
    with pytest.raises(CheckpointError, match=r"holds no checkpoint; train first, or give --model_dir$"):
        ModelDir(tmp_path).require_checkpoints()


def test_a_fresh_start_forgets_what_a_failed_one_told(tmp_path):
    folder = ModelDir(tmp_path)
    folder.log.write({"step": 1, "loss": 0.5})

    folder.forget_records()
    folder.forget_records()

    assert folder.log.read() == folder.evaluations.read() == []


def test_the_version_file_names_packages_and_data(tmp_path):
    ModelDir(tmp_path).write_version({"train/a.parquet": 123})

    facts = json.loads((tmp_path / "version").read_text())
    assert facts["data"] == {"train/a.parquet": 123}
    assert facts["packages"] == installed_versions()
    assert {"penstock", "torch", "torchrec", "pyarrow"} <= facts["packages"].keys()
