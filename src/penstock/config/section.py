"""The class behind every section of a run file."""

from collections.abc import Mapping, Set
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, model_validator
from pydantic_core import CoreSchema, PydanticCustomError

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

    def chosen(self, group: str) -> tuple[str, Any] | None:
        """The member of a one-of group that is set, with its name."""
        for name in self.one_of[group]:
            if name in self.model_fields_set and (value := getattr(self, name)) is not None:
                return name, value
        return None

    @model_validator(mode="after")
    def _one_of_groups(self) -> Self:
        written = {name for name in self.model_fields_set if is_something(getattr(self, name))}
        problems = [message for _, message in group_problems(type(self), written)]
        if problems:
            raise PydanticCustomError("one_of", "{problems}", {"problems": "; ".join(problems)})
        return self

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        _make_scalars_strict(schema, cls)
        return schema


def is_something(value: Any) -> bool:
    """Whether a member of a one-of group with this value counts as set: null, [] and {} ask for nothing."""
    return value is not None and value != [] and value != {}


def group_problems(section: type[Section], written: Set[str]) -> list[tuple[str, str]]:
    """The one-of groups that are wrong when these fields are set, each with what is wrong."""
    problems = []
    for group, members in section.one_of.items():
        present = [name for name in members if name in written]
        if len(present) > 1:
            both = "both are" if len(present) == 2 else "all are"
            problems.append((group, f"only one of {', '.join(present)} may be set; {both}"))
        elif not present and group in section.required_one_of:
            problems.append((group, f"one of {', '.join(members)} is required"))
    return problems


def _make_scalars_strict(schema: Any, owner: type[Section]) -> None:
    """Marks the scalars of a section as strict; sections below have done so themselves.

    Enums stay lax: a run file holds their names.
    """
    if isinstance(schema, list | tuple):
        for item in schema:
            _make_scalars_strict(item, owner)
    elif isinstance(schema, dict):
        kind = schema.get("type")
        if kind in _STRICT_SCALARS:
            schema["strict"] = True
        if kind != "enum" and (kind != "model" or schema["cls"] is owner):
            for name, value in schema.items():
                if name not in ("metadata", "serialization"):
                    _make_scalars_strict(value, owner)
