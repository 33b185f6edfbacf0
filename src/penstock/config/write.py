"""A section -> a run file, in each of the three syntaxes. Reading it back gives an equal section."""

import json
from typing import Any

import yaml

from penstock.config.plain import section_data
from penstock.config.section import Section
from penstock.config.syntax.text_output import write_text
from penstock.config.syntax.yaml_syntax import resolve_plain


def dump_yaml(section: Section, *, full: bool = False) -> str:
    """YAML of the written fields, or of the whole configuration in effect."""
    data = section_data(section, full=full)
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def dump_json(section: Section, *, full: bool = False) -> str:
    """JSON of the written fields, or of the whole configuration in effect."""
    return json.dumps(section_data(section, full=full), indent=2, ensure_ascii=False) + "\n"


def dump_text(section: Section, *, full: bool = False) -> str:
    """Protobuf text format of the written fields, or of the whole configuration in effect."""
    return write_text(section_data(section, full=full), type(section))


_ODD_LINE_BREAKS = {"\r", "\x85", "\u2028", "\u2029"}
"""Characters that YAML folds into a space unless they are escaped, which only double quotes do."""


class _Dumper(yaml.SafeDumper):
    """Quotes every text that our reader would take for something else, and repeats what is shared."""

    def ignore_aliases(self, data: Any) -> bool:
        """No anchors: a run file is read by people."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Indents lists under their key."""
        super().increase_indent(flow, indentless=False)


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_safe = isinstance(resolve_plain(text), str) and not _ODD_LINE_BREAKS & set(text)
    style = None if is_safe else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)
