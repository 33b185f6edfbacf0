"""Names of the run file -> the components they stand for, ours and custom ones.

A registry holds either the component itself or the dotted path where it is defined ("package.module:attribute").
Dotted paths are imported when a component is asked for, so that listing the names of a package loads nothing.

A custom component is a section with such a dotted path, or the name of an entry point that an installed package
declares in the group of the kind (`GROUPS`). The object there is called with the options as keyword arguments.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any, Generic, TypeVar, cast

from pydantic import Field

from penstock.config.errors import ConfigError, hint, nearest_name
from penstock.config.section import Section

GROUPS = {
    "feature": "penstock.features",
    "metric": "penstock.metrics",
    "loss": "penstock.losses",
    "learning_rate": "penstock.learning_rates",
    "optimizer": "penstock.optimizers",
}
"""The kinds of custom components, and the groups of their entry points."""

T = TypeVar("T")
P = TypeVar("P")


@dataclass(eq=False)
class Registry(Generic[T]):
    """The components of one kind ("reader", "model"), by name; `paths` are those that are not imported yet."""

    kind: str
    paths: Mapping[str, str] = field(default_factory=dict)
    parts: dict[str, T] = field(default_factory=dict)

    def register(self, name: str) -> Callable[[P], P]:
        def remember(part: P) -> P:
            self.parts[name] = cast(T, part)
            return part

        return remember

    def __contains__(self, name: object) -> bool:
        return name in self.parts or name in self.paths

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self.parts, *self.paths}))

    def get(self, name: str) -> T:
        if name in self.parts:
            return self.parts[name]
        path = self.paths.get(name, name)
        module_name, separator, attribute = path.partition(":")
        if not separator:
            raise ConfigError(f"unknown {self.kind} '{name}'; {hint(name, self)}")
        try:
            module = import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise
            raise ConfigError(f"{self.kind} '{path}': there is no module '{error.name}'") from error
        try:
            part = self.parts[name] = cast(T, getattr(module, attribute))
        except AttributeError as error:
            near = nearest_name(attribute, dir(module))
            guess = "" if near is None else f"; did you mean '{near}'?"
            raise ConfigError(f"{self.kind} '{path}': '{module_name}' has no '{attribute}'{guess}") from error
        return part


class CustomPart(Section):
    """A custom component."""

    import_path: Annotated[str, Field(min_length=1)]
    """Where it is defined, as "package.module:attribute", or the name of an entry point."""

    options: dict[str, Any] = {}
    """What it is made with: its keyword arguments."""


class NamedPart(CustomPart):
    """A custom component whose results have a name."""

    name: str = ""
    """The name among the results; absent: the last part of import_path."""

    @property
    def result_name(self) -> str:
        return self.name or self.import_path.rpartition(":")[2]


def result_name(key: str, section: object) -> str:
    """What a metric or loss is called in results: the key of its section, or the name that it gives itself."""
    return section.result_name if isinstance(section, NamedPart) else key


def _refused(kind: str, section: CustomPart, problem: str) -> ConfigError:
    return ConfigError(f"custom_{kind} '{section.import_path}': {problem}")


def find_part(kind: str, section: CustomPart) -> Callable[..., Any]:
    """What a section imports; `kind` is one of `GROUPS`."""
    group = GROUPS[kind]
    known = {entry.name: entry.value for entry in entry_points(group=group)}
    if ":" not in section.import_path and section.import_path not in known:
        names = ", ".join(sorted(known)) or "none"
        cure = 'write it as "package.module:attribute"'
        raise _refused(kind, section, f"is no entry point of the group {group} (there: {names}); {cure}")
    registry: Registry[Any] = Registry(f"custom_{kind}", known)
    try:
        part = registry.get(section.import_path)
    except ConfigError as error:
        if "there is no module" not in str(error):
            raise
        raise ConfigError(f"{error}; is its folder on PYTHONPATH?") from error
    except Exception as error:  # a module of somebody else may fail in any way
        raise _refused(kind, section, f"cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(part):
        raise _refused(kind, section, f"is {part!r}; name a class or function that makes the {kind}")
    return cast(Callable[..., Any], part)


def make_part(kind: str, section: CustomPart, *given: Any, **also: Any) -> Any:
    part = find_part(kind, section)
    try:
        return part(*given, **also, **section.options)
    except Exception as error:
        raise _refused(kind, section, f"cannot be made with its options: {error_text(error)}") from error


def require_call(kind: str, section: CustomPart, function: Any, arguments: str) -> None:
    """Refuses what cannot be called with `arguments`, which names them, such as "(base, completed)"."""
    if not callable(function):
        raise _refused(kind, section, f"gives {function!r}; it must give a function of {arguments}")
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # a callable of C, which has no signature
        return
    try:
        signature.bind(*arguments.split(","))
    except TypeError as error:
        problem = f"takes {signature}, but is called with {arguments}: {error}"
        raise _refused(kind, section, problem) from error


def error_text(error: Exception) -> str:
    """An error of somebody else's code; with its kind where the text alone may be no more than a name or a number."""
    return str(error) if isinstance(error, TypeError | ValueError) else f"{type(error).__name__}: {error}"
