"""Whatever can be configured can be written in each syntax and read back."""

from collections.abc import Callable
from typing import Annotated

import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import Field, PositiveInt

from penstock.config.load import parse_section
from penstock.config.section import Section
from penstock.config.write import dump_json, dump_text, dump_yaml
from tests.config.strategies import repaired, section_strategy, written
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


class Groups(Section):
    columns: dict[Annotated[str, Field(min_length=1)], PositiveInt | list[str]] = {}


@pytest.mark.parametrize("columns", [["a", "b"], 3], ids=["names", "a count"])
def test_what_a_validator_says_of_a_key_is_taken_out_whatever_stands_there(columns: object) -> None:
    """Pydantic notes '[key]' behind the key, which is no place in a list of names."""
    section = repaired({"columns": {"": columns, "kept": 1}}, Groups)

    assert section == Groups(columns={"kept": 1})
