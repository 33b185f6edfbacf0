"""Run files as they are written: read back, described, and compared."""

from penstock.config.load import parse_section
from penstock.config.schema import field_docs
from penstock.config.section import Paths, Section
from penstock.config.write import SettingDifference, differences, dump_text, dump_yaml
from tests.config.toy import Adam, DataConfig, FeatureConfig, IdFeature, Mode, Model, Run, TrainConfig

RUN = Run(
    model_dir="out\x03",
    data_config=DataConfig(fg_mode=Mode.FG_DAG, label_fields=["no"], shuffle_buffer=1 << 21),
    feature_configs=[
        FeatureConfig(id_feature=IdFeature(feature_name="user", embedding_dim=8, vocab_dict={"a": 1}))
    ],
    model=Model(final=Adam(), options={"k": [1, None]}),
)
TEXT = r"""model_dir: "out\x03"
data_config { fg_mode: FG_DAG label_fields: ["no"] shuffle_buffer: "2MiB" }
feature_configs { id_feature { feature_name: "user" embedding_dim: 8 vocab_dict { key: "a" value: 1 } } }
model_config {
  options { fields { key: "k" value { list_value {
    values { number_value: 1 } values { null_value: NULL_VALUE } } } } }
  final {}
}"""


def test_text_format():
    assert dump_text(RUN).split() == TEXT.split()


def test_the_whole_configuration_leaves_out_what_only_old_files_write():
    text = dump_yaml(Run(train_config=TrainConfig(num_steps=3)), full=True)
    run = parse_section(Run, text, "yaml").section

    assert "batch_size: 1024" in text
    assert not {"quota", "kafka", "fg_encoded"} & run.data_config.model_fields_set
    assert run == Run(train_config=TrainConfig(num_steps=3))


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


def test_changed_added_and_removed_keys_with_their_paths() -> None:
    old = {"train_config": {"num_epochs": 1, "seed": 3}, "data_config": {"shuffle": True}}
    new = {"train_config": {"num_epochs": 2, "seed": 3}, "data_config": {"label_fields": ["a", "b"]}}

    assert differences([old, new]) == [
        SettingDifference("train_config.num_epochs", ("1", "2")),
        SettingDifference("data_config.shuffle", ("true", None)),
        SettingDifference("data_config.label_fields", (None, "[a, b]")),
    ]


def test_features_are_compared_by_name_not_by_place() -> None:
    user = {"id_feature": {"feature_name": "user", "embedding_dim": 8}}
    item = {"id_feature": {"feature_name": "item", "embedding_dim": 8}}
    wide_item = {"id_feature": {"feature_name": "item", "embedding_dim": 16}}

    assert differences([{"feature_configs": [user, item]}, {"feature_configs": [wide_item, user]}]) == [
        SettingDifference("feature_configs[item].id_feature.embedding_dim", ("8", "16"))
    ]
