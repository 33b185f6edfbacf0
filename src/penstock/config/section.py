"""The class behind every section of a run file, what its fields can declare, and types that many fields share.

A marker stands in `Annotated` and takes effect only when a run file really writes the field:

    quota: Annotated[str, Ignored("Penstock has no quotas")] = ""
    dlrm: Annotated[Dlrm | None, Later("the model dlrm")] = None
    kafka: Annotated[bool, Refused("Kafka is not supported")] = False
    fg_encoded: Annotated[bool, Legacy("fg_mode")] = True
"""

from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    model_validator,
)
from pydantic_core import CoreSchema, InitErrorDetails, PydanticCustomError

from penstock.config.errors import Problem, hint

_STRICT_SCALARS = frozenset({"int", "float", "bool", "str"})


class Section(BaseModel):
    """One section of the run file: fields with types, defaults, and a docstring under each field.

    Scalars are strict: '3' is not an integer and 1 is not a boolean, though an integer is a number, and numbers
    are finite. Enums are written by name. `model_fields_set` holds what the file really wrote.
    """

    model_config = ConfigDict(
        extra="forbid",
        validate_assignment=False,
        protected_namespaces=(),
        allow_inf_nan=False,
        populate_by_name=True,
        defer_build=True,
    )

    one_of: ClassVar[Mapping[str, tuple[str, ...]]] = {}
    """Groups of fields of which at most one may be set."""

    required_one_of: ClassVar[tuple[str, ...]] = ()
    """The groups of `one_of` of which exactly one must be set."""

    def __init_subclass__(
        cls,
        group: str | None = None,
        kinds: Mapping[str, type["Section"]] = MappingProxyType({}),
        markers: Mapping[str, "Marker"] = MappingProxyType({}),
        outside: Collection[str] = (),
        **config: Any,
    ) -> None:
        """`group` makes a section hold exactly one of several others: a field for each name of `kinds`.

        Without `kinds` the choice is between the fields that the section itself declares. Names `outside` the group
        are fields that are refused, and are not offered where a choice is missing.
        """
        super().__init_subclass__(**config)
        if group is None:
            return
        members = [name for name in kinds or cls.__annotations__ if name not in outside]
        cls.one_of = {group: tuple(members), **cls.one_of}
        cls.required_one_of = (group, *cls.required_one_of)
        for name, kind in kinds.items():
            optional: Any = kind | None
            cls.__annotations__[name] = Annotated[optional, markers[name]] if name in markers else optional
            setattr(cls, name, None)

    def chosen(self, group: str) -> tuple[str, Any] | None:
        for name in self.one_of[group]:
            if name in self.model_fields_set and (value := getattr(self, name)) is not None:
                return name, value
        return None

    @model_validator(mode="after")
    def _one_of_groups(self) -> Self:
        # null, [] and {} ask for nothing.
        written = {name for name in self.model_fields_set if getattr(self, name) not in (None, [], {})}
        problems = [message for _, message in group_problems(type(self), written)]
        if problems:
            raise PydanticCustomError("one_of", "{problems}", {"problems": "; ".join(problems)})
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Marks the scalars of the section as strict; sections below have done so themselves.

        Enums stay lax: a run file holds their names.
        """
        schema = handler(source)
        parts: list[Any] = [schema]
        while parts:
            part = parts.pop()
            if isinstance(part, list | tuple):
                parts += part
            elif isinstance(part, dict):
                kind = part.get("type")
                if kind in _STRICT_SCALARS:
                    part["strict"] = True
                if kind != "enum" and (kind != "model" or part["cls"] is cls):
                    parts += [part[name] for name in part if name not in ("metadata", "serialization")]
        return schema


def group_problems(section: type[Section], written: Set[str]) -> list[tuple[str, str]]:
    problems = []
    for group, members in section.one_of.items():
        present = [name for name in members if name in written]
        if len(present) > 1:
            both = "both are" if len(present) == 2 else "all are"
            problems.append((group, f"only one of {', '.join(present)} may be set; {both}"))
        elif not present and group in section.required_one_of:
            problems.append((group, f"one of {', '.join(members)} is required"))
    return problems


def raise_problems(section: BaseModel, problems: Iterable[Problem]) -> None:
    """Raises, from a validator, every problem that it found; does nothing when there is none.

    A validator that raises ValueError complains about its whole section. One that looks at several fields, or at
    sections below, knows better where a problem stands: paths begin at the section.
    """
    details = [
        InitErrorDetails(
            type=PydanticCustomError("problem", "{message}", {"message": problem.message}),
            loc=(problem.path,) if isinstance(problem.path, str) else problem.path,
            input=None,
        )
        for problem in problems
    ]
    if details:
        raise ValidationError.from_exception_data(type(section).__name__, details)


# --- What a field can declare beyond its type ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ignored:
    """The field is accepted and has no effect; it is listed once, and is an error in strict mode."""

    reason: str
    note = property(lambda self: f"Ignored: {self.reason}.")


@dataclass(frozen=True, slots=True)
class Later:
    """The field is checked, but what it asks for is not available yet.

    That is so when the field is written with another value than its default or, where `values` are given, with
    one of these. Training then stops, unless the marker is `harmless`: the run gives the same model without it,
    and a warning is enough.
    """

    what: str
    harmless: bool = False
    values: tuple[str, ...] = ()
    note = property(lambda self: f"Not available yet: {self.what}.")


@dataclass(frozen=True, slots=True)
class Refused:
    """Writing the field is an error."""

    reason: str
    note = property(lambda self: f"Cannot be used: {self.reason}.")


@dataclass(frozen=True, slots=True)
class Legacy:
    """The field works, with a warning that names the key to use instead."""

    new_name: str
    note = property(lambda self: f"Old name; use {self.new_name} instead.")


Marker = Ignored | Later | Refused | Legacy

# --- Types of values that many sections share ----------------------------------------------------------------

Probability = Annotated[float, Field(ge=0, le=1)]
"""A number from 0 to 1, both included."""

DropoutRatio = Annotated[float, Field(ge=0, lt=1)]
"""The share that is dropped: from 0 to below 1."""


def _joined(paths: Any) -> Any:
    if not isinstance(paths, list | tuple):
        return paths
    wrong = next((path for path in paths if not isinstance(path, str)), None)
    if wrong is not None:
        raise ValueError(f"{wrong!r} in the list is no path")
    return ",".join(paths)


Paths = Annotated[str, BeforeValidator(_joined, json_schema_input_type=str | list[str])]
"""Paths with commas between them; in the run file also a list."""


def words(*known: str) -> Any:
    """The annotation of a string field that takes only these words; an empty one means none, and is not listed.

    An enum would be the plain way for a new field; old text-format files write these words in quotes, which
    makes them strings.
    """

    def check(word: str | None) -> str | None:
        if word is not None and word not in known:
            raise ValueError(f"is '{word}'; {hint(word, filter(None, known))}")
        return word

    return AfterValidator(check)
