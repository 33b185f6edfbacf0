"""Whatever can be configured can be written in each syntax and read back."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings

from penstock.config.load import parse_section
from penstock.config.section import Section
from penstock.config.write import dump_json, dump_text, dump_yaml
from tests.config.strategies import section_strategy, written
from tests.config.toy import Run

WRITERS: dict[str, Callable[..., str]] = {"yaml": dump_yaml, "json": dump_json, "text": dump_text}
SLOWLY = settings(max_examples=40, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("syntax", WRITERS)
@SLOWLY
@given(run=section_strategy(Run))
def test_a_random_section_survives_every_syntax(syntax: str, run: Section) -> None:
    again = parse_section(Run, WRITERS[syntax](run), syntax).section

    assert again == run
    assert written(again) == written(run)


@pytest.mark.parametrize("syntax", WRITERS)
@SLOWLY
@given(run=section_strategy(Run))
def test_the_whole_configuration_survives_every_syntax(syntax: str, run: Section) -> None:
    assert parse_section(Run, WRITERS[syntax](run, full=True), syntax).section == run
