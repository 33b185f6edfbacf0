"""Every text that the cases of tests/end_to_end/wrong_input make a command refuse with.

The tests themselves are called, at a desk that writes down what each command said.
"""

import importlib
import inspect
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from tests.cli.desk import Desk

CASES = Path(__file__).parents[1] / "end_to_end" / "wrong_input"
MEASURED = re.compile(r"\b[\d.]+[KMG]iB\b")
"""Sizes in the texts about limits: some are measured on this machine."""


@dataclass(frozen=True)
class RecordingDesk(Desk):
    """A desk that keeps what failing commands wrote."""

    refusals: list[str] = field(default_factory=list)

    def penstock(self, *words: str) -> Result:
        done = super().penstock(*words)
        if done.exit_code != 0:
            self.refusals.append(done.stderr.replace(str(self.folder), "<folder>"))
        return done


def every_refusal(factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The texts of all cases, by file and case."""
    trained_run = _train_once(factory)
    found = {}
    for file in sorted(CASES.glob("test_*.py")):
        module = importlib.import_module(f"tests.end_to_end.wrong_input.{file.stem}")
        for name, test in vars(module).items():
            if name.startswith("test_"):
                for case, values in _cases_of(test):
                    key = f"{file.stem}: {name}" + (f": {case}" if case else "")
                    texts = _refusals_of(test, values, factory, trained_run)
                    found[key] = [
                        MEASURED.sub("<size>", text) if file.stem == "test_limits" else text for text in texts
                    ]
    return found


def _train_once(factory: pytest.TempPathFactory) -> Path:
    """What a training leaves, for the cases that begin with a trained run."""
    folder = factory.mktemp("trained")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = Desk.laid_out_in(folder).penstock("train", "run.yaml")
    assert done.exit_code == 0, done.stderr
    return folder / "run"


def _cases_of(test: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name and arguments of each case of a test with one list of parameters, or none."""
    marks = [mark for mark in getattr(test, "pytestmark", []) if mark.name == "parametrize"]
    if not marks:
        yield "", {}
        return
    [mark] = marks
    names, cases = mark.args
    names = [names] if isinstance(names, str) else list(names)
    for case in cases:
        values = getattr(case, "values", (case,) if len(names) == 1 else case)
        yield str(getattr(case, "id", values[0])), dict(zip(names, values, strict=True))


def _refusals_of(
    test: Any, values: dict[str, Any], factory: pytest.TempPathFactory, trained_run: Path
) -> list[str]:
    folder = factory.mktemp("desk")
    arguments = inspect.signature(test).parameters
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        desk = RecordingDesk.laid_out_in(folder)
        if "trained_desk" in arguments:
            shutil.copytree(trained_run, folder / "run")
        given = {
            "desk": desk,
            "trained_desk": desk,
            "tmp_path_factory": factory,
            "monkeypatch": patch,
            **values,
        }
        test(**{name: given[name] for name in arguments})
    folder.chmod(0o755)
    return desk.refusals
