"""Edits of a run file from the command line."""

from typing import Any

import pytest

from penstock.config.edits import edit_data
from tests.config.toy import Run


def data() -> dict[str, Any]:
    return {
        "data_config": {"batch_size": 3, "label_fields": ["a", "b"], "shuffle_buffer": "2MiB"},
        "feature_configs": [
            {"raw_feature": {"feature_name": "price", "embedding_dim": 8}},
            {"id_feature": {"feature_name": "user", "embedding_dim": 16}},
            {"raw_feature": {"feature_name": "age"}},
        ],
        "train_config": {"sgd_optimizer": {"lr": 1.0}, "num_steps": 3},
    }


def edited(*edits: Any) -> dict[str, Any]:
    changed = data()
    result = edit_data(Run, changed, edits)
    assert result.problems == []
    return changed


def dims(changed: dict[str, Any]) -> list[int | None]:
    return [next(iter(entry.values())).get("embedding_dim") for entry in changed["feature_configs"]]


@pytest.mark.parametrize(
    ("value", "path", "expected"),
    [
        ("FG_DAG", "fg_mode", "FG_DAG"),
        ("True", "shuffle", True),
        ("4GiB", "shuffle_buffer", "4GiB"),
        ("0.5", "null_cost", 0.5),
        ("a;b=c", "sample_cost_field", "a;b=c"),
        ("012", "sample_cost_field", "012"),
        ("[x, 007, no]", "label_fields", ["x", "007", "no"]),
    ],
)
def test_values_take_the_type_of_the_field(value: str, path: str, expected: object):
    assert edited(f"data_config.{path}={value}")["data_config"][path] == expected


@pytest.mark.parametrize(
    ("path", "left"),
    [
        ("data_config.batch_size", {"data_config": {"label_fields": ["a", "b"], "shuffle_buffer": "2MiB"}}),
        ("data_config.label_fields", {"data_config": {"batch_size": 3, "shuffle_buffer": "2MiB"}}),
        ("data_config.label_fields[0]", {"data_config": {**data()["data_config"], "label_fields": ["b"]}}),
        ("data_config", {"data_config": None}),
        ("train_config.sgd_optimizer.lr", {"train_config": {"sgd_optimizer": {}, "num_steps": 3}}),
        ("feature_configs[raw_feature.feature_name!=x]", {"feature_configs": data()["feature_configs"][1:2]}),
        # What is not there stays away, the sections around it too.
        ("data_config.sample_cost_field", {}),
        ("model_config.final.lr", {}),
    ],
)
def test_null_removes_a_key_a_section_a_list_or_an_entry(path: str, left: dict[str, Any]):
    expected = {key: value for key, value in (data() | left).items() if value is not None}

    assert edited(f"{path}=null") == edited((path, None)) == expected


def test_a_required_key_cannot_be_removed():
    [problem] = edit_data(Run, data(), ["feature_configs[0].raw_feature.feature_name=null"]).problems

    assert str(problem) == (
        "feature_configs[0].raw_feature.feature_name: is required, so that it cannot be removed; "
        "give it another value"
    )


def test_setting_one_member_of_a_group_replaces_the_other():
    train = edited("train_config.adam_optimizer.lr=0.0001", "train_config.num_epochs=2")["train_config"]

    assert train == {"adam_optimizer": {"lr": 0.0001}, "num_epochs": 2}


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("[0]", [5, 16, None]),
        ("[:-1]", [5, 16, None]),
        ("[raw_feature.feature_name=age]", [8, 16, 5]),
        ("[raw_feature.feature_name!=age]", [5, 16, None]),
        ("[raw_feature.embedding_dim>=8]", [5, 16, None]),
    ],
)
def test_entries_of_a_list(entries: str, expected: list[int | None]):
    assert dims(edited(f"feature_configs{entries}.raw_feature.embedding_dim=5")) == expected


@pytest.mark.parametrize(
    ("edit", "problem"),
    [
        ("train_config.xyz=3",
         ("unknown path: there is no 'xyz' in 'train_config'; known: adam_optimizer, mixed_precision, num_epochs, "
         "num_steps, sgd_optimizer")),
        ("batch_size=3", "unknown path; did you mean 'data_config.batch_size'?"),
        ("data_config.label_fields[7]=x", "has no entry [7]: 'data_config.label_fields' has 2"),
        ("data_config[2]=3", "goes wrong at '[2]': 'data_config' is a section, not a list"),
        ("feature_configs[1:2].raw_feature.embedding_dim=1",
         "matches nothing: no entry of 'feature_configs[1:2]' has 'raw_feature'"),
        ("feature_configs[raw_feature.feature_nam=x].raw_feature.embedding_dim=1",
         "has a condition on 'raw_feature.feature_nam': unknown key; did you mean 'feature_name'?"),
        ("feature_configs[raw_feature.feature_name>x].raw_feature.embedding_dim=1",
         "compares 'raw_feature.feature_name>x', but > needs a number"),
        ("feature_configs[raw_feature.boundaries=1].raw_feature.embedding_dim=1",
         "has a condition on 'raw_feature.boundaries', which is a list"),
        ("a..b=1", "is no path: expected a name at '.b'"),
        ("data_config.label_fields[what]=1", "is no path: '[what]' is no index, slice or condition"),
        ("train_config.adam_optimizer={]", "is set to '{]', which can be read neither as JSON nor as {...}"),
    ],
)  # fmt: skip
def test_an_edit_that_cannot_be_applied(edit: str, problem: str):
    found = edit_data(Run, data(), [edit]).problems

    assert [f"{problem.path}: {problem.message}" for problem in found] == [
        f"{edit.rpartition('=')[0]}: {problem}"
    ]


def test_a_wrong_file_does_not_crash_an_edit():
    broken = {"data_config": 3, "feature_configs": "x"}
    found = edit_data(
        Run, broken, ["data_config.batch_size=1", "feature_configs[0].id_feature.embedding_dim=1"]
    )

    assert [problem.message for problem in found.problems] == [
        "goes through 'data_config', which is not a section",
        "goes through 'feature_configs', which is not a list",
    ]
