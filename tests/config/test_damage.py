"""Damaged run files and senseless edits give a ConfigError, never another exception."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.config.errors import ConfigError
from penstock.config.load import parse_section
from tests.config.test_load import SAME_FILE
from tests.config.toy import Run

PIECES = st.sampled_from(
    [*"{}[]<>:,;\"'#&*!|-\\\n\t =?", "\x00", "é", "1e999", "0x", "<<", "key", "null", ".inf", "\\xff"]
)
EDIT_PIECES = st.sampled_from(
    [*".[]:=<>!-\"'{}01x", "data_config", "batch_size", "feature_configs", "id_feature", "feature_name"]
)


@pytest.mark.parametrize("syntax", SAME_FILE)
@settings(max_examples=150)
@given(st.data())
def test_damaged_text(syntax: str, data: st.DataObject):
    text = SAME_FILE[syntax]
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 6)))
        text = text[:start] + "".join(data.draw(st.lists(PIECES, max_size=3))) + text[end:]

    with contextlib.suppress(ConfigError):
        parse_section(Run, text, syntax)


@settings(max_examples=300)
@given(st.lists(EDIT_PIECES, max_size=12).map("".join))
def test_senseless_edits(edit: str):
    with contextlib.suppress(ConfigError):
        parse_section(Run, SAME_FILE["yaml"], "yaml", edits=[edit])
