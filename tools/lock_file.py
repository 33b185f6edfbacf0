"""Lock files: one package at one exact version per line."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

_PIN = re.compile(
    r"(?P<name>[A-Za-z0-9._-]+)==(?P<version>[A-Za-z0-9.+!_-]+)"
    r'(?:\s*;\s*sys_platform\s*(?P<comparison>==|!=)\s*"(?P<platform>\w+)")?'
)


@dataclass(frozen=True)
class Pin:
    """A package and the version it must have."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name}=={self.version}"


def normalized(name: str) -> str:
    """The one spelling of a package name: `Typing_Extensions` and `typing-extensions` are the same."""
    return re.sub(r"[-_.]+", "-", name).lower()


def read_lock(path: Path, platform: str = sys.platform) -> list[Pin]:
    """The pins of a lock file that hold on `platform`, in the order of the file."""
    pins = []
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = _PIN.fullmatch(text)
        if match is None:
            raise ValueError(f"{path}: line {number}: '{text}' is not name==version")
        if match["platform"] is None or (match["platform"] == platform) == (match["comparison"] == "=="):
            pins.append(Pin(normalized(match["name"]), match["version"]))
    return pins
