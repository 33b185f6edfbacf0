"""Wrong run files: each gives one line (one for each problem) that says what, where, and what would be right."""

import pytest

from tests.cli.desk import Desk
from tests.end_to_end.wrong_input.mistake import Wrong, assert_told_in_one_line

SPARSE = "sparse_optimizer: {adagrad_optimizer: {lr: 0.1}}"
DEEPFM = "deepfm: {deep: {hidden_units: [4]}}"
PLE = (
    "ple: {extraction_networks: [], task_towers: [{tower_name: t, label_name: click,"
    " mlp: {hidden_units: [4]}, losses: [{binary_cross_entropy: {}}], metrics: [{auc: {}}]}]}"
)

KEYS_AND_VALUES = [
    Wrong(
        "a typo in a key",
        "run.yaml: line 6, column 3: data_config.batch_sise: unknown key; did you mean 'batch_size'?",
        run=(("batch_size: 4", "batch_sise: 4"),),
    ),
    Wrong(
        "a word for a number",
        "run.yaml: line 6, column 3: data_config.batch_size: is 'many'; expected an integer",
        run=(("batch_size: 4", "batch_size: many"),),
    ),
    Wrong(
        "a fraction for a count",
        "run.yaml: line 6, column 3: data_config.batch_size: is 4.5; expected an integer",
        run=(("batch_size: 4", "batch_size: 4.5"),),
    ),
    Wrong(
        "a count of nothing",
        "run.yaml: line 6, column 3: data_config.batch_size: is 0; must be greater than 0",
        run=(("batch_size: 4", "batch_size: 0"),),
    ),
    Wrong(
        "a rate without end",
        "run.yaml: line 22, column 42: train_config.sparse_optimizer.adagrad_optimizer.lr: is inf; must be finite",
        run=((SPARSE, "sparse_optimizer: {adagrad_optimizer: {lr: .inf}}"),),
    ),
    Wrong(
        "a typo in an enum name",
        "run.yaml: line 7, column 3: data_config.fg_mode: is 'FG_NORML'; did you mean 'FG_NORMAL'?",
        run=(("FG_NORMAL", "FG_NORML"),),
    ),
    Wrong(
        "a section for a list",
        "run.yaml: line 19, column 3: model_config.metrics: is a section; expected a list",
        run=(("metrics: [{auc: {}}]", "metrics: {auc: {}}"),),
    ),
    Wrong(
        "a key twice",
        "run.yaml: line 7, column 3: data_config.batch_size: is written twice",
        run=(("batch_size: 4", "batch_size: 4\n  batch_size: 8"),),
    ),
    Wrong(
        "a required key left out",
        "run.yaml: line 20, column 1: train_config.sparse_optimizer: is required: 'user' has an embedding table",
        run=((f"  {SPARSE}\n", ""),),
    ),
    Wrong(
        "both num_steps and num_epochs",
        "run.yaml: line 20, column 1: train_config: only one of num_steps, num_epochs may be set; both are",
        run=(("num_epochs: 1", "num_epochs: 1\n  num_steps: 5"),),
    ),
    Wrong(
        "neither num_steps nor num_epochs",
        "run.yaml: line 20, column 1: train_config: one of num_steps, num_epochs is required",
        run=(("  num_epochs: 1\n", ""),),
    ),
    Wrong(
        "two optimizers",
        "run.yaml: line 22, column 3: train_config.sparse_optimizer: "
        "only one of sgd_optimizer, adagrad_optimizer may be set; both are",
        run=((SPARSE, "sparse_optimizer: {adagrad_optimizer: {lr: 0.1}, sgd_optimizer: {lr: 0.1}}"),),
    ),
]

FEATURES_AND_MODELS = [
    Wrong(
        "a feature that is not there in a group",
        "run.yaml: line 16, column 72: model_config.feature_groups[1].feature_names[2]: "
        "there is no feature named 'prise'; did you mean 'price'?",
        run=(("[user, item, price]", "[user, item, prise]"),),
    ),
    Wrong(
        "a feature name twice",
        "run.yaml: line 12, column 19: feature_configs[2].raw_feature.feature_name: "
        "'item' is there already, in feature_configs[1].id_feature",
        run=(("feature_name: price", "feature_name: item"), ("[user, item, price]", "[user, item]")),
    ),
    Wrong(
        "two sizes of one table",
        "run.yaml: line 11, column 5: feature_configs[1].id_feature: "
        "only one of num_buckets, hash_bucket_size may be set; both are",
        run=(('item_id", num_buckets: 100', 'item_id", num_buckets: 100, hash_bucket_size: 10'),),
    ),
    Wrong(
        "a group that the model needs",
        "run.yaml: line 14, column 3: model_config.feature_groups: deepfm needs a group 'deep' of type DEEP",
        run=(("    - {group_name: deep, group_type: DEEP, feature_names: [user, item, price]}\n", ""),),
    ),
    Wrong(
        "tables that cannot be multiplied",
        "run.yaml: line 11, column 84: feature_configs[1].id_feature.embedding_dim: "
        "is 8, but 'user' has 4; the factorisation machine needs one for all of its features",
        run=(
            ('item_id", num_buckets: 100, embedding_dim: 4', 'item_id", num_buckets: 100, embedding_dim: 8'),
        ),
    ),
    Wrong(
        "a width that tables cannot have",
        "run.yaml: line 11, column 84: feature_configs[1].id_feature.embedding_dim: "
        "is 10, not a multiple of 4; use 12",
        run=(
            ('item_id", num_buckets: 100, embedding_dim: 4', 'item_id", num_buckets: 100, embedding_dim: 10'),
            ("[user, item, price]", "[user, price]"),
        ),
    ),
    Wrong(
        "an expression without a side",
        "run.yaml: feature_configs[0].id_feature.expression: "
        "'user_id' is not of the form side:column, such as user:age",
        run=(("user:user_id", "user_id"),),
    ),
    Wrong(
        "a model that comes later",
        "run.yaml: model_config.ple: the model ple is not available yet",
        run=(
            (DEEPFM, PLE),
            ("  losses: [{binary_cross_entropy: {}}]\n  metrics: [{auc: {}}]\n", ""),
            ("    - {group_name: wide, group_type: WIDE, feature_names: [user, item]}\n", ""),
            ("group_name: deep", "group_name: all"),
        ),
    ),
    Wrong(
        "a metric whose prediction the model does not give",
        "run.yaml: model_config.metrics[0].recall_at_k: "
        "'recall_at_k' needs the prediction similarities; this model gives logits, probs",
        run=(("{auc: {}}", "{recall_at_k: {top_k: 5}}"),),
    ),
    Wrong(
        "a best metric that evaluation does not give",
        "run.yaml: export_config.best_exporter_metric: evaluation does not give 'aux'; did you mean 'auc'?",
        run=(
            (
                "train_config:",
                "export_config: {exporter_type: best, best_exporter_metric: aux}\ntrain_config:",
            ),
        ),
    ),
    Wrong(
        "a stream instead of files",
        "run.yaml: line 7, column 3: data_config.dataset_type: "
        "KafkaDataset is not supported; read files, or write the topic to files first",
        run=(("batch_size: 4", "batch_size: 4\n  dataset_type: KafkaDataset"),),
    ),
    Wrong(
        "no label",
        "run.yaml: data_config.label_fields: is empty; name the column with the label",
        run=(("  label_fields: [click]\n", ""),),
    ),
    Wrong(
        "no model_dir",
        "run.yaml: model_dir: is required by this command; set it, or give --model_dir",
        run=(("model_dir: run\n", ""),),
    ),
    Wrong(
        "a shuffle buffer that holds nothing",
        "run.yaml: line 8, column 3: data_config.shuffle_buffer: is 8; a shuffle needs at least 1MiB",
        run=(("batch_size: 4", "batch_size: 4\n  shuffle: true\n  shuffle_buffer: 8"),),
    ),
    Wrong(
        "a key without effect, with --strict",
        "run.yaml: line 22, column 3: train_config.delta_embedding_dump_config: is ignored: "
        "changed embeddings are not dumped",
        run=(("num_epochs: 1", "num_epochs: 1\n  delta_embedding_dump_config: {}"),),
        command="train run.yaml --strict",
    ),
]

FILES = [
    Wrong(
        "no such file", "rum.yaml: there is no such file; did you mean 'run.yaml'?", command="train rum.yaml"
    ),
    Wrong(
        "a folder in its place",
        "folder.yaml: is a directory; expected a run file",
        prepare=lambda folder: (folder / "folder.yaml").mkdir(),
        command="train folder.yaml",
    ),
    Wrong(
        "an ending that is none of ours",
        "run.toml: '.toml' is no ending of a run file; known: .yaml, .yml, .json, .config, .pbtxt, .textproto",
        files={"run.toml": "x = 1"},
        command="train run.toml",
    ),
    Wrong("an empty file", "run.yaml: is empty", files={"run.yaml": ""}),
    Wrong("bytes", "run.yaml: is not UTF-8 text (at byte 0)", files={"run.yaml": b"\x80\x00"}),
    Wrong(
        "prose",
        "run.yaml: holds 'train my model'; expected keys such as model_dir",
        files={"run.yaml": "train my model"},
    ),
    Wrong(
        "not YAML",
        "run.yaml: line 2, column 10: is not valid YAML: did not find expected ',' or ']'",
        files={"run.yaml": "train_input_path: [clicks\nmodel_dir: run\n"},
    ),
    Wrong(
        "not JSON",
        "run.json: line 1, column 21: is not valid JSON: expected a key in double quotes",
        files={"run.json": '{"model_dir": "run",}'},
        command="train run.json",
    ),
    Wrong(
        "text format that does not end",
        "run.config: line 4, column 1: is not valid text format: expected '}', found the end of the file",
        files={"run.config": 'model_dir: "run"\ndata_config {\n  batch_size: 4\n'},
        command="train run.config",
    ),
    Wrong(
        "a typo in text format",
        "run.config: line 3, column 3: data_config.batch_sise: unknown key; did you mean 'batch_size'?",
        files={"run.config": 'model_dir: "run"\ndata_config {\n  batch_sise: 4\n}\n'},
        command="train run.config",
    ),
]


@pytest.mark.parametrize("wrong", [*KEYS_AND_VALUES, *FEATURES_AND_MODELS, *FILES], ids=str)
def test_one_line(desk: Desk, wrong: Wrong) -> None:
    assert_told_in_one_line(desk, wrong)


def test_several_problems_are_told_at_once_in_the_order_of_the_file(desk: Desk) -> None:
    desk.write_run(
        ("batch_size: 4", "batch_sise: 4"),
        ("FG_NORMAL", "FG_NORML"),
        (SPARSE, "sparse_optimizer: {adagrad_optimizer: {lr: fast}}"),
    )

    done = desk.penstock("train", "run.yaml")

    assert done.stderr.splitlines() == [
        "error: run.yaml: 3 problems:",
        "  line 6, column 3: data_config.batch_sise: unknown key; did you mean 'batch_size'?",
        "  line 7, column 3: data_config.fg_mode: is 'FG_NORML'; did you mean 'FG_NORMAL'?",
        "  line 22, column 42: train_config.sparse_optimizer.adagrad_optimizer.lr: is 'fast'; expected a number",
    ]
    assert done.exit_code == 1
