"""A folder with the module that extracts samples."""

from pathlib import Path

import pytest

from tests.prep.raw import write_module


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_module(tmp_path, monkeypatch)
    return tmp_path
