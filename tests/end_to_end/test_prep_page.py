"""docs/prep.md, from replays to a model: every command prints what the page shows, and what it claims is so."""

import doctest
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import yaml

from penstock.config.section import Section
from penstock.prep.sections import Preprocessing, SampleSchema, Splits
from tests.end_to_end.conftest import Workplace

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs" / "prep.md").read_text()
OF_THE_MACHINE = re.compile(
    r"[\d.]+ s\b|[\d,]+ samples/s|\d+ worker process(es)?|[\d.]+[MG]iB(?=[ ,)])|(?<=es at most )[\d.]+[MG]iB"
)
"""Times, rates, workers and memory; the sizes of results end a line, and stay."""
MEASURED = re.compile(r"\b[0-9]\.\d{4}\b")
"""Losses and metrics: the same from run to run, but for the arithmetic of another processor."""
SECTIONS: dict[str, type[Section]] = {"schema": SampleSchema, "splits": Splits}
GAMES = "match,gold,wood,move,legal\nm1,5,2.5,1,011\nm1,6,0,2,111\nm2,1,1,0,100\n"


def section(title: str) -> str:
    """What stands under a heading of the page."""
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(language: str, title: str) -> list[str]:
    """What is written in this language under a heading."""
    return re.findall(rf"^```{language}\n(.*?)^```", section(title), re.DOTALL | re.MULTILINE)


def commands() -> Iterator[tuple[list[str], list[str]]]:
    """The words of each command of the first section, and the lines that the page shows of its output; ... are more."""
    for block in blocks("console", "From replays to a model"):
        for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = piece.splitlines()
            if command.startswith("penstock "):
                yield shlex.split(command)[1:], [line for line in shown if line.strip() != "..."]


def without_numbers_of_the_machine(line: str) -> str:
    return MEASURED.sub("#", OF_THE_MACHINE.sub("#", line))


def defaults(kind: type[Section]) -> Iterator[tuple[str, object]]:
    """Every key of a section and of those in it, with its default as YAML has it."""
    for name, field in kind.model_fields.items():
        key = field.alias or name
        nested = SECTIONS.get(key)
        if key != "schema":
            value = field.get_default(call_default_factory=True)
            yield key, getattr(value, "value", value)
        if nested is not None:
            yield from ((f"{key}.{inner}", value) for inner, value in defaults(nested))


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A folder with the examples, from which the functions of the page are found, as with PYTHONPATH."""
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    for folder in (REPOSITORY / "examples" / "game", tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.chdir(tmp_path)
    return Workplace(tmp_path, tmp_path / "data", tmp_path / "prep.yaml")


@pytest.fixture
def moves(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    """A raw file and a module with the functions that the page shows."""
    monkeypatch.delitem(sys.modules, "moves", raising=False)
    (place.folder / "moves.py").write_text("\n".join(blocks("python", "An extract function")))
    (place.folder / "raw").mkdir()
    (place.folder / "raw" / "game.csv").write_text(GAMES)
    return place


@pytest.mark.slow
def test_every_command_prints_what_the_page_shows(place: Workplace) -> None:
    for words, shown in commands():
        done = place.process(*words) if words[0] == "train" else place.penstock(*words)

        assert done.code == 0, done.err
        printed = {without_numbers_of_the_machine(line): line for line in (done.err + done.out).splitlines()}
        for line in shown:
            same = printed.get(without_numbers_of_the_machine(line))
            assert same is not None, (line, done.out)
            found, expected = MEASURED.findall(same), MEASURED.findall(line)
            assert [*map(float, found)] == pytest.approx([*map(float, expected)], abs=0.02)
    (examples,) = blocks("pycon", "From replays to a model")
    page = doctest.DocTestParser().get_doctest(examples, {}, "prep.md", None, 0)
    assert doctest.DocTestRunner().run(page).failed == 0


def test_the_table_has_every_key_with_its_default() -> None:
    rows = re.findall(
        r"^\| `([\w.]+)` \| `(.*?)` \|", section("Every key of `preprocessing`"), flags=re.MULTILINE
    )

    assert {key: yaml.safe_load(default) for key, default in rows} == dict(defaults(Preprocessing))


@pytest.mark.parametrize(
    ("function", "num_heads_with_masks"), [("moves:samples", 1), ("moves:arrays", 0), (None, 0)]
)
def test_functions_and_columns_of_the_page_give_the_same_numbers(
    moves: Workplace, function: str | None, num_heads_with_masks: int
) -> None:
    (columns,) = blocks("yaml", "An extract function")
    run = yaml.safe_load(columns) if function is None else {"preprocessing": {"input_path": "raw"}}
    run["preprocessing"] |= {"extract": function, "parallel": False}
    moves.run_file.write_text(yaml.safe_dump(run))

    done = moves.penstock("prep", "prep.yaml", "--plain")

    assert done.code == 0, done.err
    assert np.load("data/processed/X_train.npy").tolist() == [[5, 2.5], [6, 0], [1, 1]]
    assert np.load("data/processed/labels_train.npz")["move"].tolist() == [1, 2, 0]
    assert os.path.exists("data/processed/masks_train.npz") is bool(num_heads_with_masks)


def test_what_the_page_says_about_errors_is_printed(place: Workplace) -> None:
    text = section("Errors, kills and changes")
    replay = place.data / "game" / "replays" / "game-00003.jsonl"
    prep = ("prep", "examples/prep_medium.yaml", "--plain", "--parallel", "false")
    place.penstock("sample-data", "--kind", "game", "--rows", "4000", "--out", "data/game")
    whole = replay.read_text()

    replay.write_text(f'{whole}{{"seconds": 3}}\n')
    assert place.penstock(*prep).err.splitlines()[-1] in text
    skipped = place.penstock(*prep, "--set", "preprocessing.on_error=skip").out.splitlines()
    assert [line for line in text.splitlines() if line.startswith(("prepared  3,6", "left out"))] == [
        line for line in skipped if line.startswith(("prepared", "left out"))
    ]

    replay.write_text(whole)
    assert place.penstock(*prep, "--restart", "--skip-merge").code == 0
    other = place.penstock(*prep, "--set", "preprocessing.batch_size=250")
    assert other.err.splitlines()[-1] in text
