"""Every problem of a run file in one error, in the words of the file."""

from pathlib import Path

import pytest

from penstock.config.errors import ConfigError
from penstock.config.load import apply_edits, load_section, parse_section
from tests.config.toy import Mode, Run


def problems(text: str, syntax: str = "yaml", **options: object) -> list[str]:
    with pytest.raises(ConfigError) as error:
        parse_section(Run, text, syntax, **options)  # type: ignore[arg-type]
    return [str(problem) for problem in error.value.problems]


SAME_FILE = {
    "yaml": """\
model_dir: out
data_config:
  batch_size: 256
  fg_mode: FG_DAG
  label_fields: [click]
feature_configs:
  - id_feature: {feature_name: user, embedding_dim: 8}
  - raw_feature: {feature_name: price}
model_config:
  final: {lr: 0.5}
""",
    "json": """\
{"model_dir": "out",
 "data_config": {"batch_size": 256, "fg_mode": "FG_DAG", "label_fields": ["click"]},
 "feature_configs": [{"id_feature": {"feature_name": "user", "embedding_dim": 8}},
                     {"raw_feature": {"feature_name": "price"}}],
 "model_config": {"final": {"lr": 0.5}}}
""",
    "text": """\
model_dir: "out"
data_config { batch_size: 256 fg_mode: FG_DAG label_fields: "click" }
feature_configs { id_feature { feature_name: "user" embedding_dim: 8 } }
feature_configs { raw_feature { feature_name: "price" } }
model_config { final { lr: 0.5 } }
""",
}


@pytest.mark.parametrize("syntax", SAME_FILE)
def test_three_syntaxes_say_the_same(syntax: str):
    run = parse_section(Run, SAME_FILE[syntax], syntax).section

    assert run == parse_section(Run, SAME_FILE["json"], "json").section
    assert run.data_config.fg_mode is Mode.FG_DAG
    assert run.model is not None
    assert run.model.final is not None
    assert run.model.final.lr == 0.5


WRONG_IN_EVERY_SYNTAX = {
    "yaml": """\
data_confg: {}
data_config:
  batch_size: abc
  fg_mode: FG_DAGG
  shuffle: 1
feature_configs:
  - id_feature: {embedding_dim: 4, num_bucket: 3}
train_config: {num_steps: 1, num_epochs: 1}
""",
    "text": """\
data_confg {}
data_config {
  batch_size: "abc"
  fg_mode: FG_DAGG
  shuffle: 2 }

feature_configs { id_feature { embedding_dim: 4 num_bucket: 3 } }
train_config { num_steps: 1 num_epochs: 1 }
""",
}


@pytest.mark.parametrize("syntax", WRONG_IN_EVERY_SYNTAX)
def test_all_problems_at_once_in_the_order_of_the_file(syntax: str):
    with pytest.raises(ConfigError) as error:
        parse_section(Run, WRONG_IN_EVERY_SYNTAX[syntax], syntax)

    found = error.value.problems
    assert [problem.line for problem in found] == [1, 3, 4, 5, 7, 7, 8]
    without_places = sorted(f"{problem.path}: {problem.message}" for problem in found)
    value = {"yaml": "1", "text": "2"}[syntax]
    assert without_places == [
        "data_confg: unknown key; did you mean 'data_config'?",
        "data_config.batch_size: is 'abc'; expected an integer",
        "data_config.fg_mode: is 'FG_DAGG'; did you mean 'FG_DAG'?",
        f"data_config.shuffle: is {value}; expected true or false",
        "feature_configs[0].id_feature.feature_name: is required",
        "feature_configs[0].id_feature.num_bucket: unknown key; did you mean 'num_buckets'?",
        "train_config: only one of num_steps, num_epochs may be set; both are",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data_config: {null_cost: []}", "data_config.null_cost: is a list; expected a number or a string"),
        ("data_config: {label_fields: [a, 3]}", "data_config.label_fields[1]: is 3; expected a string"),
        ("data_config: 3", "data_config: is 3; expected a section"),
        ("data_config: {kafka: true}", "data_config.kafka: cannot be used: Kafka is not supported"),
        ("data_config: {quota: }", "data_config.quota: is empty; give it a value, or remove the key"),
        ("data_config: {batch_size: 99999999999999999999}",
         "data_config.batch_size: is 99999999999999999999; expected an integer below 2^63"),
        ("feature_configs: [{}]", "feature_configs[0]: one of id_feature, raw_feature is required"),
        ("feature_configs: [{id_featur: {}}]", "feature_configs[0].id_featur: unknown key; did you mean 'id_feature'?"),
        ("data_config: {null_cost: 3}", "null_cost needs sample_cost_field"),
        ("train_config: {zzz: 1}",
         ("train_config.zzz: unknown key; known: "
         "adam_optimizer, mixed_precision, num_epochs, num_steps, sgd_optimizer")),
        ("model_config: {options: {x: [9223372036854775808]}}",
         "model_config.options.x[0]: is 9223372036854775808; expected an integer below 2^63"),
        ("model_config: {adam_by_part: {a b: {lr: x}}}",
         "model_config.adam_by_part['a b'].lr: is 'x'; expected a number"),
    ],
)  # fmt: skip
def test_one_problem(text: str, message: str):
    [found] = problems(text)
    assert found.endswith(message)


def test_ignored_fields_are_errors_when_strict():
    text = "data_config: {quota: big}"

    assert parse_section(Run, text, "yaml").notices.ignored[0].message == "Penstock has no quotas"
    assert problems(text, strict=True) == [
        "line 1, column 15: data_config.quota: is ignored: Penstock has no quotas"
    ]


def test_a_value_from_an_edit_has_no_line_of_the_file():
    text = "data_config: {batch_size: abc}"

    assert problems(text, edits=["data_config.batch_size=x"]) == [
        "data_config.batch_size: is 'x'; expected an integer"
    ]


def test_edits_of_a_loaded_section():
    run = parse_section(Run, SAME_FILE["yaml"], "yaml").section

    edited = apply_edits(run, {"data_config.batch_size": 16})

    assert (run.data_config.batch_size, edited.data_config.batch_size) == (256, 16)


def message_of(path: Path) -> str:
    with pytest.raises(ConfigError) as error:
        load_section(Run, path)
    return str(error.value).replace(f"{path.parent}/", "")


def test_files_that_cannot_be_read(tmp_path: Path):
    (tmp_path / "empty.yaml").write_text(" \n")
    (tmp_path / "comment.yaml").write_text("# nothing\n")
    (tmp_path / "list.yaml").write_text("- 1\n")
    (tmp_path / "latin.json").write_bytes(b'{"model_dir": "\xe9"}')
    (tmp_path / "folder.yaml").mkdir()

    assert (
        message_of(tmp_path / "emty.yaml") == "emty.yaml: there is no such file; did you mean 'empty.yaml'?"
    )
    assert message_of(tmp_path / "empty.yaml") == "empty.yaml: is empty"
    assert message_of(tmp_path / "comment.yaml") == "comment.yaml: is empty"
    assert message_of(tmp_path / "list.yaml") == "list.yaml: holds a list; expected keys such as model_dir"
    assert message_of(tmp_path / "latin.json") == "latin.json: is not UTF-8 text (at byte 15)"
    assert message_of(tmp_path / "folder.yaml") == "folder.yaml: is a directory; expected a run file"
    assert message_of(tmp_path / "run.toml") == (
        "run.toml: '.toml' is no ending of a run file; known: .yaml, .yml, .json, .config, .pbtxt, .textproto"
    )


def test_a_byte_order_mark_does_no_harm(tmp_path: Path):
    path = tmp_path / "run.yaml"
    path.write_bytes(b"\xef\xbb\xbfmodel_dir: x\n")

    assert load_section(Run, path).section.model_dir == "x"
