"""Names of arrays that become names of files, of members of archives, and of data sets.

They come from files that anybody may have written: none may lead out of the store, or hide in it.
"""

from penstock.config.errors import DataError

_SEPARATORS = "/\\"


def check_file_name(name: str, array: str, what: str = "a file of its own") -> None:
    """Refuse what cannot be a file of the store, or another thing in it that is named alike."""
    if not _is_name(name) or any(separator in name for separator in _SEPARATORS):
        raise DataError(
            f"array {array!r} cannot be {what}: {name!r} is no name of one; give it a name without / and \\ "
            "that does not begin with a dot"
        )


def check_member_name(name: str, array: str) -> None:
    """Refuse what cannot be a member of an archive; folders in it are good, where they stay in it."""
    if "\\" in name or not all(_is_name(part) for part in name.split("/")):
        raise DataError(
            f"array {array!r} cannot be in an .npz file: {name!r} is no name of a member; give it a name without \\ "
            "that does not begin with a dot"
        )


def _is_name(name: str) -> bool:
    return bool(name) and name[0] != "." and name.isprintable()
