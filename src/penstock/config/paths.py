"""Places in a run file: feature_configs[3].id_feature.num_buckets."""

import re
from collections.abc import Mapping

KeyPath = tuple[str | int, ...]
Position = tuple[int, int]

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]*")


def format_path(path: KeyPath) -> str:
    """A path as users write it."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{part!r}]"
    return text


def position_of(path: KeyPath, positions: Mapping[KeyPath, Position]) -> Position | None:
    """Where a path stands in the text: its own place, or that of the section around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in positions:
            return positions[path[:length]]
    return None
