"""A desk to work at."""

from pathlib import Path

import pytest

from tests.cli.desk import Desk


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """Six rows, a run file, and the current folder."""
    monkeypatch.chdir(tmp_path)
    return Desk.laid_out_in(tmp_path)
