"""What a section takes, and what its fields report about themselves."""

from typing import Any

import pytest
from pydantic import ValidationError

from penstock.config.check import Notices, notices
from penstock.config.errors import Problem
from penstock.config.load import parse_section
from penstock.config.section import Paths, Section
from tests.config.toy import Adam, Run, Sgd, TrainConfig


def test_scalars_are_strict_but_an_integer_is_a_number():
    assert Adam.model_validate({"lr": 1}).lr == 1.0
    for data in ({"lr": "1"}, {"amsgrad": 1}, {"amsgrad": "true"}):
        with pytest.raises(ValidationError):
            Adam.model_validate(data)


def test_the_chosen_member_of_a_group():
    train = TrainConfig(sgd_optimizer=Sgd(lr=0.5))

    assert train.chosen("optimizer") == ("sgd_optimizer", Sgd(lr=0.5))
    assert train.chosen("length") is None
    with pytest.raises(ValidationError, match="only one of adam_optimizer, sgd_optimizer may be set; both"):
        TrainConfig(sgd_optimizer=Sgd(), adam_optimizer=Adam())


class Reading(Section):
    files: Paths = ""


@pytest.mark.parametrize(
    ("written", "paths"), [("a, b/*", "a, b/*"), (["a", "b/*"], "a,b/*"), ([], "")], ids=str
)
def test_paths_are_a_string_or_a_list(written: Any, paths: str):
    assert Reading.model_validate({"files": written}).files == paths


def test_written_fields_with_markers_are_listed():
    text = "data_config: {quota: x, fg_encoded: true}\ntrain_config: {mixed_precision: BF16}"
    found = parse_section(Run, text, "yaml").notices

    assert notices(Run()) == Notices()
    assert found == Notices(
        ignored=(Problem(("data_config", "quota"), "Penstock has no quotas"),),
        legacy=(Problem(("data_config", "fg_encoded"), "fg_mode"),),
        later=(Problem(("train_config", "mixed_precision"), "mixed precision is not available yet"),),
    )
    assert found.lines() == [
        "data_config.fg_encoded: old name, use fg_mode instead",
        "data_config.quota: ignored (Penstock has no quotas)",
    ]


def test_what_entries_of_a_list_share_is_reported_once():
    ignored = [Problem(("feature_configs", index, "id_feature", "stub_type"), "why") for index in range(26)]

    assert Notices(ignored=tuple(ignored)).lines() == [
        "feature_configs[].id_feature.stub_type (26 times): ignored (why)"
    ]
