"""What to do about a batch file that cannot be merged."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.store.damage import DamagedFile, MissingFile
from penstock.store.manifest import MANIFEST_NAME

_PREPARE = "run penstock prep, which writes it again"


@contextmanager
def curing(intermediate_dir: Path) -> Iterator[None]:
    """Say of a damaged file how its folder gets it back: penstock prep makes anew what it finds missing.

    It looks at headers and not at values, so that a damaged file has to go first.
    """
    try:
        yield
    except DamagedFile as error:
        if not (intermediate_dir / MANIFEST_NAME).exists():
            raise
        cure = _PREPARE if isinstance(error, MissingFile) else f"delete that file and {_PREPARE}"
        raise type(error)(error.problem, cure) from error
