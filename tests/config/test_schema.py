"""JSON Schema of a run file."""

from penstock.config.schema import field_docs
from penstock.config.section import Paths, Section


class Limits(Section):
    size: int = 0
    """How large."""

    plain: int = 0
    files: Paths = ""
    """Which files.

    All of them."""


class NarrowLimits(Limits):
    size: int = 1
    """How large, at most 10."""


def test_a_field_is_described_by_the_newest_docstring_under_it():
    assert field_docs(Limits) == {"size": "How large.", "files": "Which files.\n\nAll of them."}
    assert field_docs(NarrowLimits) == field_docs(Limits) | {"size": "How large, at most 10."}
