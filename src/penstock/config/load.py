"""A run file -> a checked section, or one error with everything that is wrong, in the words of the run file.

Two judges look at the data. `KeyCheck` walks over the keys: unknown keys, one-of groups, refused and empty
fields. `value_problems` translates what pydantic says of the values. The first sees all, even where the second
stops early. `notices` lists fields that are ignored, old, or not available yet.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, cast

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from penstock.config.edits import Edits, edit_data
from penstock.config.errors import ConfigError, KeyPath, Problem, format_path, hint, nearest_name
from penstock.config.section import Ignored, Later, Legacy, Refused, Section, group_problems
from penstock.config.shape import (
    AnyShape,
    EnumShape,
    ListShape,
    MapShape,
    ScalarShape,
    SectionShape,
    Shape,
    UnionShape,
    child_shape,
    fields_of,
    sections_below,
)
from penstock.config.syntax import SYNTAX_OF_SUFFIX, Parsed, read
from penstock.config.write import section_data

_REPORTED_ELSEWHERE = frozenset({"extra_forbidden", "one_of"})
_LIMITS = {
    "greater_than": "must be greater than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "multiple_of": "must be a multiple of {multiple_of}",
    "finite_number": "must be finite",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match {pattern}",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "expected {expected}",
}
_MAX_SHOWN = 60

S = TypeVar("S", bound=Section)


Complete = Callable[[dict[str, Any], str], Iterable[Problem]]
"""Fills in what a file of this syntax may leave out, in place, after all edits; gives what it may not leave out."""


@dataclass(frozen=True, slots=True)
class Loaded(Generic[S]):
    section: S
    notices: list["Notice"]
    edited: Set[KeyPath] = frozenset()
    """The paths that edits gave a value, or took one from."""


def load_section(
    root: type[S],
    source: Path | Mapping[str, Any] | str,
    *,
    edits: Edits = (),
    strict: bool = False,
    complete: Complete | None = None,
) -> Loaded[S]:
    """Reads a file in the syntax of its name, the same as a mapping, or YAML; applies edits, and checks everything.

    `strict` makes ignored fields errors.
    """
    if isinstance(source, Path):
        text, syntax, name = *_read_file(source), str(source)
        parsed = read(text, syntax, root) if text.strip() else Parsed()
    else:
        syntax, name = "yaml", "the run file"
        parsed = read(source, syntax, root) if isinstance(source, str) else Parsed(deepcopy(dict(source)))
    return _checked(root, parsed, edits, strict, name, complete and (lambda data: complete(data, syntax)))


def _read_file(path: Path) -> tuple[str, str]:
    """The text of a run file and its syntax, by the ending of its name."""
    syntax, source = SYNTAX_OF_SUFFIX.get(path.suffix.lower()), str(path)
    if syntax is None and path.exists() and not path.is_dir():
        endings = ", ".join(SYNTAX_OF_SUFFIX)
        raise ConfigError(f"'{path.suffix}' is no ending of a run file; known: {endings}", source)
    try:
        return path.read_text(encoding="utf-8"), str(syntax)
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


def parse_section(
    root: type[S], text: str, syntax: str, *, edits: Edits = (), strict: bool = False
) -> Loaded[S]:
    return _checked(root, read(text, syntax, root), edits, strict)


def apply_edits(section: S, edits: Edits) -> S:
    return _checked(type(section), Parsed(section_data(section)), edits).section


def _checked(
    root: type[S],
    parsed: Parsed,
    edits: Edits,
    strict: bool = False,
    source: str | None = None,
    complete: Callable[[dict[str, Any]], Iterable[Problem]] | None = None,
) -> Loaded[S]:
    if not parsed.readable:
        raise ConfigError(_sorted(parsed.problems), source)
    if parsed.data is None:
        raise ConfigError("is empty", source)
    if not isinstance(parsed.data, dict):
        raise ConfigError(f"holds {shown(parsed.data)}; expected keys such as model_dir", source)
    edited = edit_data(root, parsed.data, edits)
    found = [] if complete is None else list(complete(parsed.data))
    keys = KeyCheck()
    keys.section(parsed.data, root)
    found += [problem for problem in keys.problems if problem.path not in parsed.broken]
    section, reported = None, [Notice("repeated", path, "is written twice") for path in parsed.repeated]
    try:
        section = root.model_validate(parsed.data)
        reported += notices(section)
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
    return Loaded(section, reported, edited.paths)


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


# --- Keys, and values ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class KeyCheck:
    """The problems of the keys, and the paths about which nothing more needs to be reported."""

    problems: list[Problem] = field(default_factory=list)
    excused: set[KeyPath] = field(default_factory=set)

    def section(self, data: Any, section: type[Section], path: KeyPath = ()) -> None:
        if not isinstance(data, dict):
            return
        fields = fields_of(section)
        written, is_explained = set(), False
        for key, value in data.items():
            known = fields.get(key)
            if known is None:
                self._unknown(key, data, section, path)
                is_explained = True
                continue
            for marker in known.markers:
                if isinstance(marker, Refused):
                    self._add((*path, key), f"cannot be used: {marker.reason}")
                    is_explained = True
            # null means what leaving the key out means: `num_workers: null` is 'choose for me'.
            can_be_null = not (known.info.is_required() or isinstance(known.shape, SectionShape))
            if value is not None or not can_be_null or known.default is not None:
                self._value(value, known.shape, (*path, key))
            # In a one-of group an empty section counts as set, an empty list or mapping does not.
            is_set = bool(value) if isinstance(known.shape, ListShape | MapShape) else value is not None
            written |= {known.name} if is_set else set()
        for group, message in group_problems(section, written):
            if not (is_explained and written.isdisjoint(section.one_of[group])):
                self._add(path, message)

    def _add(self, path: KeyPath, message: str) -> None:
        self.problems.append(Problem(path, message))

    def _unknown(self, key: str, data: dict[str, Any], section: type[Section], path: KeyPath) -> None:
        known = list(fields_of(section))
        python_names = {field.name: known_key for known_key, field in fields_of(section).items()}
        below = "' or '".join(f"{each}.{key}" for each in sections_below(section, key))
        near = python_names.get(key) or below or nearest_name(key, known)
        if near is not None and near not in data:
            self.excused.add((*path, near))
        guess = f"did you mean '{near}'?" if near else hint(key, known)
        self._add((*path, key), f"unknown key; {guess}")

    def _value(self, value: Any, shape: Shape, path: KeyPath) -> None:
        if value is None and not isinstance(shape, AnyShape):
            is_section = isinstance(shape, SectionShape)
            instead = "write {} for a section with default values" if is_section else "give it a value"
            self._add(path, f"is empty; {instead}, or remove the key")
            self.excused.add(path)
        elif isinstance(shape, SectionShape):
            self.section(value, shape.section, path)
        elif isinstance(shape, ListShape | AnyShape) and isinstance(value, list):
            for index, item in enumerate(value):
                self._value(item, shape.item if isinstance(shape, ListShape) else shape, (*path, index))
        elif isinstance(shape, MapShape | AnyShape) and isinstance(value, dict):
            for key, item in value.items():
                self._value(key, AnyShape(), path)
                self._value(item, shape.value if isinstance(shape, MapShape) else shape, (*path, key))
        elif isinstance(value, int) and not -(1 << 63) <= value < 1 << 63:
            self._add(path, f"is {value}; expected an integer below 2^63")
            self.excused.add(path)
        elif isinstance(value, str) and any("\ud800" <= character <= "\udfff" for character in value):
            self._add(path, "holds half of a surrogate pair, which is not text")
            self.excused.add(path)


def value_problems(error: ValidationError, root: type[Section]) -> list[Problem]:
    """What pydantic found. The members of a union complain together, in the same words."""
    problems = []
    for detail in error.errors(include_url=False):
        if detail["type"] not in _REPORTED_ELSEWHERE:
            path, shape = _path_and_shape(detail["loc"], root)
            problems.append(Problem(path, _message(detail, shape)))
    return list(dict.fromkeys(problems))


def shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a section"
    text = "a list" if isinstance(value, list) else repr(value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


def _path_and_shape(location: Iterable[str | int], root: type[Section]) -> tuple[KeyPath, Shape]:
    """The path of an error as users write it: keys for Python names, without pydantic's notes on unions."""
    path: list[str | int] = []
    shape: Shape = SectionShape(root)
    for part in location:
        key = part
        if isinstance(shape, SectionShape):
            keys = {field.name: field.key for field in fields_of(shape.section).values()}
            key = keys.get(str(part), part)
        inner = child_shape(shape, key)
        if inner is None or (isinstance(shape, ListShape) and isinstance(part, str)):
            break
        path.append(key)
        shape = inner
    return tuple(path), shape


def _message(detail: ErrorDetails, shape: Shape) -> str:
    kind, value, context = detail["type"], detail["input"], detail.get("ctx", {})
    if kind == "missing":
        return "is required"
    if kind == "problem":
        return detail["msg"]
    if kind == "value_error":
        return str(context["error"])
    if kind == "string_too_short" and context["min_length"] == 1:
        return "is empty; give it a value"
    if kind in _LIMITS:
        return f"is {shown(value)}; {_LIMITS[kind].format(**context)}"
    if isinstance(shape, EnumShape) and isinstance(value, str):
        return f"is '{value}'; {hint(value, shape.names)}"
    if isinstance(shape, EnumShape):
        return f"is {shown(value)}; expected one of {', '.join(shape.names)}"
    if kind.endswith(("_type", "_parsing", "_from_float")) or isinstance(shape, ScalarShape | UnionShape):
        return f"is {shown(value)}; expected {shape.words}"
    return f"is {shown(value)}; {detail['msg'][:1].lower()}{detail['msg'][1:]}"


# --- What a section that is right reports about itself ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Notice:
    """A written field with a marker.

    The message is the reason why it is `ignored`, the new name of a `legacy` one, or what is not available yet:
    `later`, or `harmless` where the run gives the same model without it. A scalar may be `repeated` in text format.
    """

    kind: Literal["ignored", "legacy", "later", "harmless", "repeated"]
    path: KeyPath
    message: str


def notices(value: Any, path: KeyPath = ()) -> Iterator[Notice]:
    """What is worth knowing about a section and all below it, in the order of its fields.

    Of what is not available yet as a whole, its parts are not listed.
    """
    if isinstance(value, Section):
        for key, field in fields_of(type(value)).items():
            item, where, is_later = getattr(value, field.name), (*path, key), False
            if field.name not in value.model_fields_set or item is None:
                continue
            for marker in field.markers:
                if isinstance(marker, Ignored):
                    yield Notice("ignored", where, marker.reason)
                elif isinstance(marker, Legacy):
                    yield Notice("legacy", where, marker.new_name)
                elif isinstance(marker, Later) and (
                    item in marker.values if marker.values else item != field.default
                ):
                    kind: Literal["harmless", "later"] = "harmless" if marker.harmless else "later"
                    yield Notice(kind, where, f"{marker.what} is not available yet")
                    is_later = True
            if not is_later:
                yield from notices(item, where)
    elif isinstance(value, list | tuple | dict):
        for part, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from notices(item, (*path, part))


def notice_lines(found: Iterable[Notice]) -> list[str]:
    """What a user should read: each field once for all entries of a list, with how often it occurs."""
    lines = []
    counts = Counter(
        (each.kind, re.sub(r"\[\d+\]", "[]", format_path(each.path)), each.message) for each in found
    )
    for wanted, text in (
        ("legacy", "old name, use {} instead"),
        ("ignored", "ignored ({})"),
        ("harmless", "{}; going on without"),
        ("repeated", "{}; the last one counts"),
    ):
        for (kind, path, message), count in counts.items():
            if kind == wanted:
                times = f" ({count} times)" if count > 1 else ""
                lines.append(f"{path}{times}: {text.format(message)}")
    return lines
