"""JSON Schema of a run file."""

from penstock.config.schema import field_docs, json_schema
from penstock.config.section import Paths, Section
from tests.config.toy import Run

SCHEMA = json_schema(Run)
SECTIONS = SCHEMA["$defs"]


def test_keys_are_those_of_the_file_and_nothing_else_is_allowed():
    assert list(SCHEMA["properties"]) == [
        "model_dir", "data_config", "feature_configs", "model_config", "train_config", "matrix", "groups",
    ]  # fmt: skip
    assert SCHEMA["additionalProperties"] is False


def test_docstrings_become_descriptions():
    assert SCHEMA["description"] == "A whole run."
    batch_size = SECTIONS["DataConfig"]["properties"]["batch_size"]
    assert batch_size["description"] == "How many rows make a batch."
    assert batch_size["default"] == 1024


def test_optional_means_left_out_and_not_null():
    assert SECTIONS["TrainConfig"]["properties"]["num_steps"] == {"title": "Num Steps", "type": "integer"}


def test_a_required_group_takes_exactly_one():
    assert SECTIONS["FeatureConfig"]["allOf"] == [
        {
            "description": "one of: feature",
            "oneOf": [{"required": ["id_feature"]}, {"required": ["raw_feature"]}],
        }
    ]


def test_an_optional_group_may_be_empty():
    _, length = SECTIONS["TrainConfig"]["allOf"]
    members = [{"required": ["num_steps"]}, {"required": ["num_epochs"]}]

    assert length["oneOf"] == [*members, {"not": {"anyOf": members}}]


def test_markers_are_described():
    properties = SECTIONS["DataConfig"]["properties"]

    assert properties["quota"]["description"] == "Ignored: Penstock has no quotas."
    assert properties["fg_encoded"]["description"] == "Old name; use fg_mode instead."
    assert properties["fg_encoded"]["deprecated"] is True


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


def test_editors_know_both_forms_of_paths():
    forms = json_schema(Limits)["properties"]["files"]["anyOf"]

    assert [form["type"] for form in forms] == ["string", "array"]
