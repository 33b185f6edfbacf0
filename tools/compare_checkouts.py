"""Whether two checkouts compute the same, to the last bit, on this machine.

    python tools/compare_checkouts.py OLD NEW

Each makes its own sample data and trains the runs of tools/example_runs.py (this one's, for both) in a process of its
own, with its `src` first on PYTHONPATH. Compared are the files of the sample data, every loss, the last evaluation, and
the bytes of every tensor of the last checkpoint. One line is printed for each run; a difference makes the exit code 1.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOOL = Path(__file__).parent / "example_runs.py"
ONE_THREAD = {"OMP_NUM_THREADS": "1"}
"""Sums come out the same only when they are added in the same order."""


def results_of(checkout: Path, folder: Path) -> dict[str, Any]:
    """Run everything with the code of a checkout; gives its results.json."""
    folder.mkdir()
    command = [sys.executable, str(TOOL), str(checkout), str(folder)]
    environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{checkout}: failed with exit code {done.returncode}:\n{done.stderr}")
    results: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return results


def first_difference(old: Any, new: Any, place: str = "") -> str | None:
    """Where two trees of dicts, lists and values differ first, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        keys: list[Any] = [*old, *(key for key in new if key not in old)]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        keys = list(range(len(old)))
    else:
        return None if old == new else f"{place}: {old!r} became {new!r}"
    for key in keys:
        inner = f"{place}[{key}]" if isinstance(key, int) else f"{place}/{key}".lstrip("/")
        if isinstance(old, dict) and (key not in old or key not in new):
            return f"{inner}: is only in {'NEW' if key not in old else 'OLD'}"
        found = first_difference(old[key], new[key], inner)
        if found is not None:
            return found
    return None


def lines(old: dict[str, Any], new: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """A line for the data and for each run, and whether both sides agree on it."""
    found = first_difference(old["data"], new["data"])
    yield f"sample data: {found or 'equal'}, {len(old['data'])} files", found is None
    for name in {**old["runs"], **new["runs"]}:
        before, after = old["runs"].get(name), new["runs"].get(name)
        found = first_difference(before, after)
        if found is None:
            steps, tensors = len(before["losses"]), len(before["tensors"])
            yield f"{name}: equal, {before['rows']} rows, {steps} losses, {tensors} tensors", True
        else:
            yield f"{name}: {found}", False


def main() -> int:
    """Compare the two checkouts that the command line names."""
    parser = argparse.ArgumentParser(description="Whether two checkouts compute the same, to the last bit.")
    parser.add_argument("old", type=Path, metavar="OLD")
    parser.add_argument("new", type=Path, metavar="NEW")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        old = results_of(given.old.resolve(), Path(folder) / "old")
        new = results_of(given.new.resolve(), Path(folder) / "new")
    all_equal = True
    for line, is_equal in lines(old, new):
        print(line)
        all_equal &= is_equal
    return 0 if all_equal else 1


if __name__ == "__main__":
    sys.exit(main())
