"""A run file -> a checked section, or one error with everything that is wrong."""

import math
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar, cast

from pydantic import ValidationError

from penstock.config.check import KeyCheck, Notice, notices, shown, value_problems
from penstock.config.edits import Edits, edit_data
from penstock.config.errors import ConfigError, KeyPath, Problem, format_path
from penstock.config.nearest import nearest_name
from penstock.config.section import Section
from penstock.config.syntax import SYNTAX_OF_SUFFIX, Parsed, read
from penstock.config.write import section_data

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Loaded(Generic[S]):
    section: S
    notices: list[Notice]


def load_section(root: type[S], path: Path, *, edits: Edits = (), strict: bool = False) -> Loaded[S]:
    """Reads a run file in the syntax of its name, applies edits, and checks everything.

    `strict` makes ignored fields errors.
    """
    syntax, source = SYNTAX_OF_SUFFIX.get(path.suffix.lower()), str(path)
    if syntax is None:
        endings = ", ".join(SYNTAX_OF_SUFFIX)
        raise ConfigError(f"'{path.suffix}' is no ending of a run file; known: {endings}", source)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        names: dict[str, str] = {}
        with suppress(OSError):
            names = {
                each.stem: each.name for each in path.parent.iterdir() if each.suffix in SYNTAX_OF_SUFFIX
            }
        near = nearest_name(path.stem, names)
        guess = f"; did you mean '{names[near]}'?" if near else ""
        raise ConfigError(f"there is no such file{guess}", source) from None
    except IsADirectoryError:
        raise ConfigError("is a directory; expected a run file", source) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (at byte {error.start})", source) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", source) from None
    parsed = read(text, syntax, root) if text.strip() else Parsed()
    return _checked(root, parsed, edits, strict, source)


def parse_section(
    root: type[S], text: str, syntax: str, *, edits: Edits = (), strict: bool = False
) -> Loaded[S]:
    return _checked(root, read(text, syntax, root), edits, strict)


def apply_edits(section: S, edits: Edits) -> S:
    return _checked(type(section), Parsed(section_data(section)), edits).section


def _checked(
    root: type[S], parsed: Parsed, edits: Edits, strict: bool = False, source: str | None = None
) -> Loaded[S]:
    if not parsed.readable:
        raise ConfigError(_sorted(parsed.problems), source)
    if parsed.data is None:
        raise ConfigError("is empty", source)
    if not isinstance(parsed.data, dict):
        raise ConfigError(f"holds {shown(parsed.data)}; expected keys such as model_dir", source)
    edited = edit_data(root, parsed.data, edits)
    keys = KeyCheck()
    keys.section(parsed.data, root)
    found = [problem for problem in keys.problems if problem.path not in parsed.broken]
    section, reported = None, []
    try:
        section = root.model_validate(parsed.data)
        reported = list(notices(section))
    except ValidationError as error:
        known = parsed.broken | keys.excused
        found += [problem for problem in value_problems(error, root) if problem.path not in known]
    if strict:
        ignored = [each for each in reported if each.kind == "ignored"]
        found += [Problem(each.path, f"is ignored: {each.message}") for each in ignored]
    problems = [*edited.problems, *parsed.problems]
    problems += [_with_position(each, parsed, edited.paths) for each in found]
    if problems or section is None:
        raise ConfigError(_sorted(problems), source)
    return Loaded(section, reported)


def _with_position(problem: Problem, parsed: Parsed, edited: Set[KeyPath]) -> Problem:
    """The problem with its own line, or that of the section around it; a value of an edit has none."""
    path = cast(KeyPath, problem.path)
    around = [path[:length] for length in range(len(path), 0, -1)]
    known = [parsed.positions[each] for each in around if each in parsed.positions]
    line, column = known[0] if known and edited.isdisjoint(around) else (None, None)
    return Problem(format_path(path), problem.message, line, column)


def _sorted(problems: Sequence[Problem]) -> list[Problem]:
    """In the order of the file; problems without a line come last."""
    return sorted(problems, key=lambda problem: (problem.line or math.inf, problem.column or 0))
