"""Who this machine is to the table service (ODPS, MaxCompute): a file that a variable names, or variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from penstock.config.errors import ConfigError

FILE_VARIABLE = "ODPS_CONFIG_FILE_PATH"
_KEYS = {"access_id": "ODPS_ACCESS_ID", "access_key": "ODPS_ACCESS_KEY", "end_point": "ODPS_ENDPOINT"}
"""Keys of the file, and the variables that say the same."""


@dataclass(frozen=True, slots=True)
class OdpsAccess:
    """Keys and address of the service."""

    access_id: str
    access_key: str = field(repr=False)
    endpoint: str

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """What ODPS_CONFIG_FILE_PATH's file says; what it does not, ODPS_ACCESS_ID, _KEY and ODPS_ENDPOINT."""
        file = environment.get(FILE_VARIABLE, "")
        said = _read(Path(file)) if file else {}
        values = {key: said.get(key) or environment.get(variable, "") for key, variable in _KEYS.items()}
        missing = [key for key, value in values.items() if not value]
        if missing:
            where = f"{file} has no {missing[0]}" if file else f"{_KEYS[missing[0]]} is not set"
            raise ConfigError(
                f"odps:// paths need keys, but {where}; set {', '.join(_KEYS.values())}, or {FILE_VARIABLE} to a file "
                "with lines such as access_id=..., access_key=..., end_point=..."
            )
        return cls(values["access_id"], values["access_key"], values["end_point"])


def _read(path: Path) -> dict[str, str]:
    """Lines of the form key=value; others mean nothing here."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"{FILE_VARIABLE} is {path}, which cannot be read: {error.strerror}") from error
    pairs = (line.partition("=") for line in lines if not line.lstrip().startswith("#"))
    return {key.strip(): value.strip() for key, separator, value in pairs if separator}
