"""Names of the run file -> the parts they stand for.

A registry holds either the part itself or the place where it is defined ("package.module:attribute"). Places
are imported when a part is asked for, so that listing the names of a package loads nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Generic, TypeVar, cast

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint, nearest_name

T = TypeVar("T")
P = TypeVar("P")


class Registry(Generic[T]):
    """The parts of one kind ("reader", "model"), by name."""

    def __init__(self, kind: str, places: Mapping[str, str] | None = None) -> None:
        self.kind = kind
        self._places = dict(places or {})
        self._parts: dict[str, T] = {}

    def register(self, name: str) -> Callable[[P], P]:
        """A decorator that puts a part under a name. A name is given once."""

        def remember(part: P) -> P:
            known = self._parts.get(name)
            if known is not None and known is not part:
                raise ValueError(f"{self.kind} '{name}' is registered twice")
            self._parts[name] = cast(T, part)
            return part

        return remember

    def get(self, name: str) -> T:
        """The part of this name, or the one at this place ("package.module:attribute")."""
        if name not in self._parts:
            self._parts[name] = self._resolve(name)
        return self._parts[name]

    def __contains__(self, name: object) -> bool:
        return name in self._parts or name in self._places

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._parts, *self._places}))

    def _resolve(self, name: str) -> T:
        place = self._places.get(name, name)
        module_name, separator, attribute = place.partition(":")
        if not separator:
            raise ConfigError(f"unknown {self.kind} '{name}'; {hint(name, self)}")
        try:
            module = import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
                raise
            raise ConfigError(f"{self.kind} '{place}': there is no module '{error.name}'") from error
        try:
            return cast(T, getattr(module, attribute))
        except AttributeError as error:
            near = nearest_name(attribute, dir(module))
            guess = "" if near is None else f"; did you mean '{near}'?"
            raise ConfigError(
                f"{self.kind} '{place}': '{module_name}' has no '{attribute}'{guess}"
            ) from error
