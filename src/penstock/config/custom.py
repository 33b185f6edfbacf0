"""Parts of one's own in a run file: a place ("package.module:attribute") and options.

The object at the place is called with the options as keyword arguments and gives the part. A name without a colon is
that of an entry point, which an installed package declares in the group of the kind (`GROUPS`).
"""

import inspect
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any, cast

from pydantic import Field

from penstock.config.errors import ConfigError
from penstock.config.registry import Registry
from penstock.config.section import Section

GROUPS = {
    "metric": "penstock.metrics",
    "loss": "penstock.losses",
    "learning_rate": "penstock.learning_rates",
    "optimizer": "penstock.optimizers",
}
"""The kinds of parts that one may bring, and the groups of their entry points."""


class CustomPart(Section):
    """A part of one's own."""

    place: Annotated[str, Field(min_length=1)]
    """Where it is defined, as "package.module:attribute", or the name of an entry point."""

    options: dict[str, Any] = {}
    """What it is made with: its keyword arguments."""


class NamedPart(CustomPart):
    """A part of one's own whose results have a name."""

    name: str = ""
    """The name among the results; absent: the last part of the place."""

    @property
    def result_name(self) -> str:
        """The name among the results."""
        return self.name or self.place.rpartition(":")[2]


def result_name(key: str, section: object) -> str:
    """What a metric or loss is called in results: the key of its section, or the name that it gives itself."""
    return section.result_name if isinstance(section, NamedPart) else key


def find_part(kind: str, section: CustomPart) -> Callable[..., Any]:
    """What stands at the place of a section; `kind` is one of `GROUPS`."""
    group = GROUPS[kind]
    known = {entry.name: entry.value for entry in entry_points(group=group)}
    if ":" not in section.place and section.place not in known:
        names = ", ".join(sorted(known)) or "none"
        raise ConfigError(
            f"custom_{kind} '{section.place}': is no entry point of the group {group} (there: {names}); "
            'a place is written "package.module:attribute"'
        )
    registry: Registry[Any] = Registry(f"custom_{kind}", known)
    try:
        part = registry.get(section.place)
    except ConfigError as error:
        if "there is no module" not in str(error):
            raise
        raise ConfigError(f"{error}; is its folder on PYTHONPATH?") from error
    except Exception as error:  # a module of somebody else may fail in any way
        raise ConfigError(
            f"custom_{kind} '{section.place}': cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not callable(part):
        raise ConfigError(
            f"custom_{kind} '{section.place}': is {part!r}; name a class or function that makes the {kind}"
        )
    return cast(Callable[..., Any], part)


def make_part(kind: str, section: CustomPart, *given: Any, **also: Any) -> Any:
    """The part that the section describes: what stands at its place, called with its options."""
    part = find_part(kind, section)
    try:
        return part(*given, **also, **section.options)
    except Exception as error:
        raise ConfigError(
            f"custom_{kind} '{section.place}': cannot be made with its options: {told(error)}"
        ) from error


def require_call(kind: str, section: CustomPart, function: Any, arguments: str) -> None:
    """Refuse what cannot be called as a part of its kind is: `arguments` names them, such as "(base, completed)"."""
    if not callable(function):
        raise ConfigError(
            f"custom_{kind} '{section.place}': gives {function!r}; it must give a function of {arguments}"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable of C, which does not tell
        return
    try:
        signature.bind(*arguments.split(","))
    except TypeError as error:
        raise ConfigError(
            f"custom_{kind} '{section.place}': takes {signature}, but is called with {arguments}: {error}"
        ) from error


def told(error: Exception) -> str:
    """An error of somebody else's code; with its kind where the text alone may be no more than a name or a number."""
    return str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
