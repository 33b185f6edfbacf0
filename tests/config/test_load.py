"""Every problem of a run file in one error, in the words of the file."""

import pytest

from penstock.config.errors import ConfigError
from penstock.config.load import parse_section
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("data_config: {null_cost: []}", "data_config.null_cost: is a list; expected a number or a string"),
        ("data_config: 3", "data_config: is 3; expected a section"),
        ("data_config: {kafka: true}", "data_config.kafka: cannot be used: Kafka is not supported"),
        ("data_config: {quota: }", "data_config.quota: is empty; give it a value, or remove the key"),
        ("data_config: {batch_size: 99999999999999999999}",
         "data_config.batch_size: is 99999999999999999999; expected an integer below 2^63"),
        ("feature_configs: [{}]", "feature_configs[0]: one of id_feature, raw_feature is required"),
        ("data_config: {null_cost: 3}", "null_cost needs sample_cost_field"),
        ("batch_size: 3", "batch_size: unknown key; did you mean 'data_config.batch_size'?"),
        ("train_config: {zzz: 1}",
         ("train_config.zzz: unknown key; known: "
         "adam_optimizer, mixed_precision, num_epochs, num_steps, sgd_optimizer")),
        ("model_config: {adam_by_part: {a b: {lr: x}}}",
         "model_config.adam_by_part['a b'].lr: is 'x'; expected a number"),
    ],
)  # fmt: skip
def test_one_problem(text: str, message: str):
    [found] = problems(text)
    assert found.endswith(message)


def test_a_value_from_an_edit_has_no_line_of_the_file():
    text = "data_config: {batch_size: abc}"

    assert problems(text, edits=["data_config.batch_size=x"]) == [
        "data_config.batch_size: is 'x'; expected an integer"
    ]
