"""The output folder is whole or absent, and nothing else is lost for it."""

import fcntl
import os
import signal
import subprocess
import sys

import pytest

from penstock.config.errors import ConfigError, DataError
from penstock.prep.rewrite import room
from tests.prep.rewrite.data import multiset, rewritten, rows, write_input


@pytest.fixture
def path(tmp_path):
    return write_input(tmp_path / "in", [100])


def test_a_folder_that_holds_something_is_refused(tmp_path, path):
    rewritten(path, tmp_path / "out")

    with pytest.raises(
        ConfigError, match="out: is not empty; choose another folder, or replace it with --overwrite"
    ):
        rewritten(path, tmp_path / "out")


def test_an_older_rewrite_is_replaced_when_asked_for(tmp_path, path):
    rewritten(path, tmp_path / "out", num_files=5)
    rewritten(path, tmp_path / "out", overwrite=True)

    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == [
        "_rewrite.json",
        "part-00000.parquet",
    ]
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "out"]


def test_only_what_rewrite_wrote_is_overwritten(tmp_path, path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")

    with pytest.raises(
        ConfigError, match=r"has no _rewrite\.json, so that it was not written by penstock rewrite"
    ):
        rewritten(path, tmp_path / "out", overwrite=True)

    assert (tmp_path / "out" / "thesis.txt").exists()


def test_the_input_is_never_the_output(tmp_path, path):
    rewritten(path, tmp_path / "first")

    with pytest.raises(
        ConfigError, match=r"first: holds the input part-00000\.parquet; choose another folder"
    ):
        rewritten(tmp_path / "first", tmp_path / "first", overwrite=True)


def test_a_file_is_no_folder(tmp_path, path):
    (tmp_path / "out").write_text("")

    with pytest.raises(ConfigError, match="out: is a file; the output is a folder"):
        rewritten(path, tmp_path / "out")


def test_a_disk_without_room_is_told_before_the_start(tmp_path, path, monkeypatch):
    usage = type("Usage", (), {"free": 100})
    monkeypatch.setattr(room.shutil, "disk_usage", lambda folder: usage)

    expected = (
        r"the disk has 100B free but rewriting needs about .*KiB \(output .*KiB, temporary files .*KiB\)"
    )
    with pytest.raises(DataError, match=expected):
        rewritten(path, tmp_path / "out", shuffle=True)

    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]


def test_a_rewrite_at_work_is_noticed(tmp_path, path):
    staging = tmp_path / ".out.partial"
    staging.mkdir()
    descriptor = os.open(staging, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    with pytest.raises(ConfigError, match="out: another penstock rewrite is writing it; wait for it"):
        rewritten(path, tmp_path / "out")

    os.close(descriptor)
    rewritten(path, tmp_path / "out")


SLOW_REWRITE = """
import sys, time
from pathlib import Path
from penstock.prep.rewrite import RewriteOptions, rewrite, rewriting
from tests.prep.rewrite.data import survey_of

write = rewriting.OutputFiles.write
def write_slowly(self, batch, is_view):
    write(self, batch, is_view)
    print("wrote", flush=True)
    time.sleep(600)
rewriting.OutputFiles.write = write_slowly
options = RewriteOptions(shuffle=True, num_files=10, memory_bytes=4 << 30)
rewrite(survey_of(Path(sys.argv[1])), Path(sys.argv[2]), options)
"""


def test_killed_it_leaves_nothing_that_looks_whole_and_runs_again(tmp_path, path):
    out = tmp_path / "out"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_REWRITE, str(path), str(out)], stdout=subprocess.PIPE, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"wrote\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    assert not out.exists()
    assert list((tmp_path / ".out.partial").glob("*.parquet"))

    rewritten(path, out, shuffle=True)
    assert multiset(rows(out)) == multiset(rows(path))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "out"]
