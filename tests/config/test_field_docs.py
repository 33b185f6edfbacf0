"""Docstrings under fields."""

from penstock.config.schema import field_docs
from penstock.config.section import Section


class Limits(Section):
    size: int = 0
    """How large."""

    plain: int = 0
    name: str = ""
    """What it is called.

    In full."""


class NarrowLimits(Limits):
    size: int = 1
    """How large, at most 10."""


def test_a_field_is_described_by_the_docstring_under_it():
    assert field_docs(Limits) == {"size": "How large.", "name": "What it is called.\n\nIn full."}


def test_a_section_has_the_docs_of_the_sections_it_builds_on():
    assert field_docs(NarrowLimits)["size"] == "How large, at most 10."
    assert field_docs(NarrowLimits)["name"].startswith("What it is called.")
