"""The files of expected/, and how they are written again.

    PENSTOCK_UPDATE_GOLDEN=1 python -m pytest tests/golden tests/end_to_end/wrong_input    (without -n)

writes them after an intended change; the diff of expected/ shows the change to whoever reads the commit.
"""

import json
import os
from pathlib import Path
from typing import Any

EXPECTED = Path(__file__).parent / "expected"
IS_UPDATING = "PENSTOCK_UPDATE_GOLDEN" in os.environ


def expected_text(name: str, found: str) -> str:
    """The content of a file of expected/, after writing it where that was asked for."""
    path = EXPECTED / name
    if IS_UPDATING:
        path.parent.mkdir(exist_ok=True)
        path.write_text(found)
    return path.read_text()


def expected_json(name: str, found: dict[str, Any]) -> dict[str, Any]:
    """The same of a JSON file of cases; those that were not run now are kept as they are."""
    path = EXPECTED / name
    kept = json.loads(path.read_text()) if path.exists() else {}
    return json.loads(expected_text(name, json.dumps({**kept, **found}, indent=1, sort_keys=True) + "\n"))
