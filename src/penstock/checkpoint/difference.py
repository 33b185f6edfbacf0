"""How what is asked of a checkpoint differs from what it holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from penstock.checkpoint.manifest import TensorRecord

_MAX_NAMED = 10


@dataclass(frozen=True, slots=True)
class Difference:
    """Names that are only on one side, and tensors that are another shape or dtype than the checkpoint's."""

    missing: tuple[str, ...] = ()
    """Wanted, but not in the checkpoint."""
    extra: tuple[str, ...] = ()
    """In the checkpoint, but not wanted."""
    changed: tuple[str, ...] = ()
    """In both, but not alike: each entry is a name with both descriptions."""

    @classmethod
    def between(cls, stored: Mapping[str, TensorRecord], wanted: Mapping[str, TensorRecord]) -> Self:
        """Compare by name, then shape and dtype."""
        changed = [
            f"{name} (checkpoint {stored[name]}, model {wanted[name]})"
            for name in sorted(stored.keys() & wanted.keys())
            if (stored[name].shape, stored[name].dtype) != (wanted[name].shape, wanted[name].dtype)
        ]
        return cls(
            missing=tuple(sorted(wanted.keys() - stored.keys())),
            extra=tuple(sorted(stored.keys() - wanted.keys())),
            changed=tuple(changed),
        )

    def __bool__(self) -> bool:
        return bool(self.missing or self.extra or self.changed)

    def __str__(self) -> str:
        parts = {
            "missing in the checkpoint": self.missing,
            "only in the checkpoint": self.extra,
            "not alike": self.changed,
        }
        return "; ".join(f"{title}: {_listed(names)}" for title, names in parts.items() if names)


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
