"""The example of docs/training.md, from early stopping to a tuned model: every command prints what the page shows."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.end_to_end.conftest import Workplace

REPOSITORY = Path(__file__).parents[2]
MEASURED = re.compile(r"\b0\.\d{4,6}\b")
"""Losses and metrics: the same from run to run, but for the arithmetic of another processor."""


def example() -> str:
    """The part of the page that the example is."""
    page = (REPOSITORY / "docs" / "training.md").read_text()
    _, _, rest = page.partition("### From early stopping to a tuned model\n")
    return rest.partition("\n## ")[0]


def blocks(language: str) -> list[str]:
    """What the example holds in this language."""
    return re.findall(rf"^```{language}\n(.*?)^```", example(), re.DOTALL | re.MULTILINE)


def commands() -> Iterator[tuple[list[str], list[str]]]:
    """The words of each command, and the lines that the page shows of its output."""
    for block in blocks("console"):
        for piece in re.split(r"^\$ penstock ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            command, *shown = piece.splitlines()
            yield shlex.split(command), shown


def write_run_file(folder: Path) -> None:
    """The run file that the example describes."""
    run = yaml.safe_load((REPOSITORY / "examples" / "quickstart.yaml").read_text())
    (changes,) = map(yaml.safe_load, blocks("yaml"))
    run["train_config"].update(changes.pop("train_config"))
    (folder / "run.yaml").write_text(yaml.safe_dump({**run, **changes}))


def measured(lines: list[str]) -> list[float]:
    return [float(number) for line in lines for number in MEASURED.findall(line)]


def without_measured(lines: list[str]) -> list[str]:
    return [MEASURED.sub("#", line) for line in lines]


@pytest.mark.slow
def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    write_run_file(tmp_path)
    place = Workplace(tmp_path, tmp_path / "data", tmp_path / "run.yaml")

    for words, shown in commands():
        done = place.penstock(*words)

        assert done.code == 0, done.err
        first_words = {line.split()[0] for line in shown}
        printed = (done.err + done.out).splitlines()
        alike = [line for line in printed if line.split() and line.split()[0] in first_words][: len(shown)]
        assert without_measured(alike) == without_measured(shown), " ".join(words)
        assert measured(alike) == pytest.approx(measured(shown), abs=0.003)
