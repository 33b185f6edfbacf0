"""A folder with the module that extracts samples."""

from pathlib import Path

import pytest

from tests.prep.raw import write_module


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which `rawgame` is known."""
    write_module(tmp_path, monkeypatch)
    return tmp_path
