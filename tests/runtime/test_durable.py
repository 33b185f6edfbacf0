"""Files that appear when they are whole, and leave nothing behind when they do not."""

import errno

import pytest

from penstock.runtime.durable import PARTIAL_SUFFIX, Journal, remove_partial, replacing


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    with replacing(path) as stream:
        stream.write(b"new")
        assert path.read_bytes() == b"old"

    assert path.read_bytes() == b"new"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_an_error_leaves_what_was_there(tmp_path, error):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    with pytest.raises(type(error)), replacing(path) as stream:  # noqa: PT012
        stream.write(b"half of the n")
        raise error

    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_what_a_killed_writer_left_is_removed(tmp_path):
    (tmp_path / f".file.0123abcd{PARTIAL_SUFFIX}").write_bytes(b"half")
    (tmp_path / "file").write_bytes(b"whole")
    (tmp_path / f"mine{PARTIAL_SUFFIX}").write_bytes(b"somebody's")

    assert remove_partial(tmp_path) == 1

    assert sorted(file.name for file in tmp_path.iterdir()) == ["file", f"mine{PARTIAL_SUFFIX}"]


def test_records_come_back_up_to_where_they_are_cut(tmp_path):
    journal = Journal(tmp_path / "log.jsonl")
    for step in (1, 2, 3):
        journal.write({"step": step, "loss": float("nan")})
    with journal.path.open("a") as file:
        file.write('{"step": 4, "lo')  # torn by a kill

    assert [record["step"] for record in journal.read()] == [1, 2, 3]
    journal.cut_back(2)

    assert journal.read() == [{"step": 1, "loss": None}, {"step": 2, "loss": None}]
