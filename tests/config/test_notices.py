from penstock.config.errors import Problem
from penstock.config.load import parse_section
from penstock.config.notices import Notices, notices
from tests.config.toy import Run


def test_markers_speak_only_for_what_is_written():
    assert notices(Run()) == Notices()


def test_written_fields_are_listed_with_their_paths():
    text = "data_config: {quota: x, fg_encoded: true}\ntrain_config: {mixed_precision: BF16}"
    found = parse_section(Run, text, "yaml").notices

    assert found == Notices(
        ignored=(Problem(("data_config", "quota"), "Penstock has no quotas"),),
        legacy=(Problem(("data_config", "fg_encoded"), "fg_mode"),),
        later=(Problem(("train_config", "mixed_precision"), "mixed precision is not available yet"),),
    )
    assert found.lines() == [
        "data_config.fg_encoded: old name, use fg_mode instead",
        "data_config.quota: ignored (Penstock has no quotas)",
    ]


def test_what_entries_of_a_list_share_is_told_once():
    places = [Problem(("feature_configs", index, "id_feature", "stub_type"), "why") for index in range(26)]

    assert Notices(ignored=tuple(places)).lines() == [
        "feature_configs[].id_feature.stub_type (26 times): ignored (why)"
    ]
