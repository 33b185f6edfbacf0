"""Run files as they are written."""

from penstock.config.load import parse_section
from penstock.config.write import dump_text, dump_yaml
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
