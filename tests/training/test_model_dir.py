"""What lies where in a model_dir, and what is refused before anything is written."""

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from penstock.config.errors import CheckpointError, ConfigError
from penstock.runtime.durable import PARTIAL_SUFFIX
from penstock.runtime.world import installed_versions
from penstock.training.model_dir import ModelDir


def test_a_checkpoint_that_was_being_replaced_is_one_of_a_trained_run(tmp_path):
    folder = ModelDir(tmp_path)
    (folder.checkpoints / ".step-10.replaced").mkdir(parents=True)

    with pytest.raises(CheckpointError, match="holds a trained run already"), folder.lock():
        pass
    with folder.lock(resume=True):
        pass


def test_a_run_that_goes_on_began_when_it_began(tmp_path):
    folder = ModelDir(tmp_path)
    assert folder.started_at is None

    before = time.time()
    folder.begin("", {}, None, is_new=True)
    began = folder.started_at
    folder.begin("", {"train/a.parquet": 123}, {"rows": 5}, is_new=False)
    assert folder.started_at == began
    assert before - 1 <= began <= time.time() + 1
    facts = json.loads((tmp_path / "version").read_text())
    assert (facts["data"], facts["packages"]) == ({"train/a.parquet": 123}, installed_versions())

    folder.log.write({"step": 1, "loss": 0.5})
    for name in ("run.yaml", "mine"):
        (tmp_path / f".{name}.0123abcd{PARTIAL_SUFFIX}").touch()
    folder.begin("", {}, None, is_new=True)
    assert [path.name for path in tmp_path.glob(".*")] == [f".mine.0123abcd{PARTIAL_SUFFIX}"]
    assert folder.log.read() == folder.evaluations.read() == []
    assert folder.started_at != began


@pytest.mark.parametrize("text", ["[]", "torn {", '{"started_at": 3}', '{"started_at": "monday"}'])
def test_a_version_file_that_does_not_say_when_the_run_began(tmp_path, text):
    (tmp_path / "version").write_text(text)

    assert ModelDir(tmp_path).started_at is None


@pytest.fixture
def temporary_folder(tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def test_one_training_at_a_time_writes_in_a_folder(tmp_path, monkeypatch, temporary_folder):
    monkeypatch.chdir(tmp_path)

    with (
        ModelDir(Path("run")).lock(),
        ModelDir(Path("other/deep")).lock(),
        pytest.raises(ConfigError) as error,
        ModelDir(tmp_path / "run").lock(),
    ):
        pass

    assert str(error.value) == (
        f"model_dir: another penstock train is writing in '{tmp_path / 'run'}'; "
        "wait until it ends, or choose another --model_dir"
    )
    with ModelDir(Path("run")).lock():
        pass
    assert list(tmp_path.iterdir()) == [], "locking makes nothing in the model_dir"


def test_a_killed_training_lets_go(tmp_path, temporary_folder):
    hold = (
        "import sys; from pathlib import Path; from penstock.training.model_dir import ModelDir\n"
        "with ModelDir(Path(sys.argv[1])).lock(): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", hold, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(ConfigError, match="another penstock train"), ModelDir(tmp_path).lock():
            pass
        holder.kill()
        holder.wait()
    with ModelDir(tmp_path).lock():
        pass


def test_a_lock_leaves_nothing_behind_and_holds_for_one_at_a_time(tmp_path, temporary_folder):
    folder, inside, most = ModelDir(tmp_path), [], []

    def work():
        for _ in range(200):
            try:
                with folder.lock():
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except ConfigError:
                continue

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(most) == {1}
    assert list(temporary_folder.iterdir()) == []
