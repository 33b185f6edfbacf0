"""Reads the catalogue of the names of the pipeline file."""

import re
from dataclasses import dataclass, field
from pathlib import Path

CATALOGUE = Path(__file__).parents[3] / "shared" / "spec" / "schema.md"


@dataclass(frozen=True)
class CatalogueField:
    name: str
    type: str
    is_list: bool
    required: bool
    default: str | None
    group: str | None


@dataclass
class Catalogue:
    messages: dict[str, list[CatalogueField]] = field(default_factory=dict)
    enums: dict[str, list[str]] = field(default_factory=dict)


def read_catalogue(path: Path = CATALOGUE) -> Catalogue:
    catalogue = Catalogue()
    for line in path.read_text().splitlines():
        if enum := re.match(r"\s*-?\s*enum \**(\w+)\**: (.*)", line):
            catalogue.enums[enum[1]] = enum[2].split(", ")
        elif message := re.match(r"- \*\*(\w+)\*\*: ?(.*)", line):
            catalogue.messages[message[1]] = list(_fields(message[2]))
    return catalogue


def _fields(text: str):
    group = None
    for piece in filter(None, re.split(r"; (?=\w)|^; ", text)):
        group_name, name, mark, brackets, type_name, default = re.fullmatch(
            r"(?:one of \*(\w+)\*: )?(\w+)(!?): (\[?)(\w+)\]?(?:=(.*))?", piece
        ).groups()
        group = group_name or group
        yield CatalogueField(name, type_name, bool(brackets), bool(mark), default, group)
