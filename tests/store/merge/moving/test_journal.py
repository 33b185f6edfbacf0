"""Parts are noted as done when their bytes are on disk."""

import threading

import pytest

from penstock.store.merge.moving import journal
from penstock.store.merge.moving.journal import JOURNAL_NAME, PartJournal

WROTE = {("train", "labels_a"): (7, 40)}


@pytest.fixture
def synced(tmp_path, monkeypatch):
    """What was noted before each time that a file was flushed, in order."""
    (tmp_path / "X.npy").touch()
    (tmp_path / JOURNAL_NAME).touch()
    found = []
    real = journal.sync_path

    def sync_path(path):
        real(path)
        found.append((path.name, sorted(PartJournal(tmp_path, durable=False).read())))

    monkeypatch.setattr(journal, "sync_path", sync_path)
    return found


def test_what_is_noted_is_read(tmp_path):
    with PartJournal(tmp_path, durable=True) as parts:
        parts.note(3, WROTE, [])
        parts.note(1, {}, [])

    assert PartJournal(tmp_path, durable=True).read() == {3: WROTE, 1: {}}


def test_bytes_are_on_disk_before_the_note(tmp_path, synced):
    with PartJournal(tmp_path, durable=True) as parts:
        parts.note(0, WROTE, ["X.npy"])

    assert synced == [("X.npy", [])]
    assert PartJournal(tmp_path, durable=True).read() == {0: WROTE}


def test_nothing_waits_for_a_disk_that_nobody_asked_to_wait_for(tmp_path, synced):
    with PartJournal(tmp_path, durable=False) as parts:
        parts.note(0, WROTE, ["X.npy"])

    assert synced == []
    assert PartJournal(tmp_path, durable=False).read() == {0: WROTE}


def test_parts_that_a_slow_disk_holds_up_are_noted_together(tmp_path, synced, monkeypatch):
    began, may_go_on, sync_path = threading.Event(), threading.Event(), journal.sync_path

    def slow_sync(path):
        began.set()
        assert may_go_on.wait(120)
        sync_path(path)

    monkeypatch.setattr(journal, "sync_path", slow_sync)
    with PartJournal(tmp_path, durable=True) as parts:
        parts.note(0, WROTE, ["X.npy"])
        assert began.wait(120)
        for part in (1, 2, 3):
            parts.note(part, WROTE, ["X.npy"])
        may_go_on.set()

    assert synced == [("X.npy", []), ("X.npy", [0])]
    assert sorted(PartJournal(tmp_path, durable=True).read()) == [0, 1, 2, 3]


def test_an_error_of_the_disk_is_raised_and_nothing_is_noted(tmp_path):
    with pytest.raises(FileNotFoundError), PartJournal(tmp_path, durable=True) as parts:
        parts.note(0, WROTE, ["nowhere.npy"])

    assert PartJournal(tmp_path, durable=True).read() == {}
