"""Whatever can be configured can be written in each syntax and read back."""

import json
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from penstock.config.load import parse_section
from penstock.config.section import Section
from penstock.config.write import dump_text, dump_yaml, section_data
from tests.config.strategies import section_strategy, written
from tests.config.toy import Run

WRITERS: dict[str, Callable[..., str]] = {
    "yaml": dump_yaml,
    "json": lambda section, full=False: json.dumps(section_data(section, full=full)),
    "text": dump_text,
}
SLOWLY = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("syntax", WRITERS)
@SLOWLY
@given(run=section_strategy(Run))
def test_a_random_section_survives_every_syntax(syntax: str, run: Section) -> None:
    again = parse_section(Run, WRITERS[syntax](run), syntax).section

    assert again == run
    assert written(again) == written(run)
