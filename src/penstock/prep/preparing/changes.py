"""What has changed since a preparation was begun, in words that say what one can do about it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.prep.preparing.extraction.extract_function import module_file

MODULE_CHECKSUM = "checksum of the module of extract"
"""The setting that tells one text of the user's function from another."""

PUT_BACK = "put it back as it was, start anew with --restart, or choose another intermediate_dir"
_START_ANEW = "start anew with --restart, or choose another intermediate_dir"


@dataclass(frozen=True, slots=True)
class Change:
    """The first difference that matters most."""

    line: str
    may_keep_done: bool = False
    """Whether what is done may be kept all the same, where the user says so."""


def change_since(
    old: Mapping[str, Any], new: Mapping[str, Any], old_paths: Sequence[str], new_paths: Sequence[str]
) -> Change | None:
    """The difference between settings and files then and now; a mended function comes last, since it can be kept."""
    setting = _other_setting(old, new)
    if setting is not None:
        return Change(f"was begun with something else: {setting}; {PUT_BACK}")
    files = _other_files(old_paths, new_paths)
    if files is not None:
        return Change(f"was begun with other files: {files}")
    if old.get(MODULE_CHECKSUM) != new.get(MODULE_CHECKSUM):
        return Change(
            f"the module of extract ({module_file(new['extract'])}) was changed since it was begun; go on with "
            "--keep-done, which keeps what the text before has made and does the rest with this one, or start anew "
            "with --restart",
            may_keep_done=True,
        )
    return None


def _other_setting(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    for key in {**old, **new}:
        if key != MODULE_CHECKSUM and old.get(key) != new.get(key):
            return ", ".join(_differences(key, old.get(key), new.get(key)))
    return None


def _differences(key: str, old: Any, new: Any) -> list[str]:
    """What was and what is; of what both have keys in, only those that differ."""
    if not (old and new and isinstance(old, Mapping) and isinstance(new, Mapping)):
        return [f"{key} was {json.dumps(old)} and is {json.dumps(new)}"]
    return [
        line
        for inner in {**old, **new}
        if old.get(inner) != new.get(inner)
        for line in _differences(f"{key}.{inner}", old.get(inner), new.get(inner))
    ]


def _other_files(old: Sequence[str], new: Sequence[str]) -> str | None:
    before, now = set(old), set(new)
    added = [path for path in new if path not in before]
    if added:
        return f"{_counted(added, 'was added', 'were added')}; {_START_ANEW}"
    gone = [path for path in old if path not in now]
    if gone:
        return f"{_counted(gone, 'is gone', 'are gone')}; {PUT_BACK.replace('it back as it was', 'back')}"
    return None if list(old) == list(new) else f"they are in another order; {PUT_BACK}"


def _counted(paths: Sequence[str], singular: str, plural: str) -> str:
    if len(paths) == 1:
        return f"{paths[0]} {singular}"
    return f"{len(paths):,} {plural}, the first of them {paths[0]}"
