"""A run file -> a checked section, or one error with everything that is wrong."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from penstock.config.check import key_problems
from penstock.config.edits.apply import Edited, Edits, edit_data
from penstock.config.errors import ConfigError, Problem
from penstock.config.findings import Finding
from penstock.config.nearest import nearest_name
from penstock.config.notices import Notices, notices
from penstock.config.paths import KeyPath, Position, format_path, position_of
from penstock.config.plain import section_data
from penstock.config.section import Section
from penstock.config.syntax import SYNTAX_OF_SUFFIX, read
from penstock.config.syntax.parsed import Parsed
from penstock.config.translate import shown, value_problems

S = TypeVar("S", bound=Section)


@dataclass(frozen=True, slots=True)
class Loaded(Generic[S]):
    """A checked section and what its fields say about themselves."""

    section: S
    notices: Notices


def load_section(root: type[S], path: Path, *, edits: Edits = (), strict: bool = False) -> Loaded[S]:
    """Reads a run file in the syntax of its name, applies edits, and checks everything.

    `strict` makes ignored fields errors.
    """
    syntax = SYNTAX_OF_SUFFIX.get(path.suffix.lower())
    if syntax is None:
        endings = ", ".join(SYNTAX_OF_SUFFIX)
        raise ConfigError(f"'{path.suffix}' is no ending of a run file; known: {endings}", str(path))
    return parse_section(root, _read_file(path), syntax, source=str(path), edits=edits, strict=strict)


def parse_section(
    root: type[S],
    text: str,
    syntax: str,
    *,
    source: str | None = None,
    edits: Edits = (),
    strict: bool = False,
) -> Loaded[S]:
    """Reads the text of a run file in the syntax 'yaml', 'json' or 'text'."""
    parsed = read(text, syntax, root)
    if not parsed.readable:
        raise ConfigError(_sorted(parsed.problems), source)
    if parsed.data is None:
        raise ConfigError("is empty", source)
    if not isinstance(parsed.data, dict):
        raise ConfigError(f"holds {shown(parsed.data)}; expected keys such as model_dir", source)
    return _checked(root, parsed, edits, strict, source)


def apply_edits(section: S, edits: Edits) -> S:
    """A section with edits applied to what it was written as, checked again."""
    parsed = Parsed(section_data(section))
    return _checked(type(section), parsed, edits, strict=False, source=None).section


def _checked(root: type[S], parsed: Parsed, edits: Edits, strict: bool, source: str | None) -> Loaded[S]:
    edited = edit_data(root, parsed.data, edits)
    positions = {path: place for path, place in parsed.positions.items() if not edited.covers(path)}
    section, findings = _validated(root, parsed)
    found = notices(section) if section else Notices()
    if strict:
        findings += [Finding(notice.path, f"is ignored: {notice.text}") for notice in found.ignored]
    problems = [_problem(finding, positions, edited) for finding in findings]
    problems = [*edited.problems, *parsed.problems, *problems]
    if problems or section is None:
        raise ConfigError(_sorted(problems), source)
    return Loaded(section, found)


def _validated(root: type[S], parsed: Parsed) -> tuple[S | None, list[Finding]]:
    """The section, if pydantic can make one, and everything that is wrong with the data."""
    findings = key_problems(parsed.data, root)
    try:
        return root.model_validate(parsed.data), findings
    except ValidationError as error:
        excused = parsed.broken | {finding.excuses for finding in findings if finding.excuses}
        values = [finding for finding in value_problems(error, root) if finding.place not in excused]
        return None, findings + values


def _problem(finding: Finding, positions: Mapping[KeyPath, Position], edited: Edited) -> Problem:
    position = None if edited.covers(finding.place) else position_of(finding.place, positions)
    line, column = position or (None, None)
    return Problem(format_path(finding.place), finding.message, line, column)


def _sorted(problems: Sequence[Problem]) -> list[Problem]:
    """In the order of the file; problems without a line come last."""
    return sorted(problems, key=lambda problem: (problem.line or math.inf, problem.column or 0))


def _read_file(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError(f"there is no such file{_similar(path)}", str(path)) from None
    except IsADirectoryError:
        raise ConfigError("is a directory; expected a run file", str(path)) from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"is not UTF-8 text (at byte {error.start})", str(path)) from None
    except OSError as error:
        raise ConfigError(f"cannot be read: {error.strerror}", str(path)) from None
    if not text.strip():
        raise ConfigError("is empty", str(path))
    return text


def _similar(path: Path) -> str:
    """The name in the same folder that the user may have meant."""
    try:
        names = {
            entry.stem: entry.name for entry in path.parent.iterdir() if entry.suffix in SYNTAX_OF_SUFFIX
        }
    except OSError:
        return ""
    near = nearest_name(path.stem, names)
    return f"; did you mean '{names[near]}'?" if near else ""
