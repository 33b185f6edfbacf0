"""Wrong run files: each gives one line (one for each problem) that says what, where, and what would be right."""

import pytest

from tests.end_to_end.wrong_input.mistake import Wrong

SPARSE = "sparse_optimizer: {adagrad_optimizer: {lr: 0.1}}"
DEEPFM = "deepfm: {deep: {hidden_units: [4]}}"
PLE = (
    "ple: {extraction_networks: [], task_towers: [{tower_name: t, label_name: click,"
    " mlp: {hidden_units: [4]}, losses: [{binary_cross_entropy: {}}], metrics: [{auc: {}}]}]}"
)

KEYS_AND_VALUES = [
    Wrong("a typo in a key", run=(("batch_size: 4", "batch_sise: 4"),)),
    Wrong("a word for a number", run=(("batch_size: 4", "batch_size: many"),)),
    Wrong("a fraction for a count", run=(("batch_size: 4", "batch_size: 4.5"),)),
    Wrong("a count of nothing", run=(("batch_size: 4", "batch_size: 0"),)),
    Wrong("a rate without end", run=((SPARSE, "sparse_optimizer: {adagrad_optimizer: {lr: .inf}}"),)),
    Wrong("a typo in an enum name", run=(("FG_NORMAL", "FG_NORML"),)),
    Wrong("a section for a list", run=(("metrics: [{auc: {}}]", "metrics: {auc: {}}"),)),
    Wrong("a key twice", run=(("batch_size: 4", "batch_size: 4\n  batch_size: 8"),)),
    Wrong("a required key left out", run=(("{feature_name: user, ", "{"),)),
    Wrong("both num_steps and num_epochs", run=(("num_epochs: 1", "num_epochs: 1\n  num_steps: 5"),)),
    Wrong(
        "two optimizers",
        run=((SPARSE, "sparse_optimizer: {adagrad_optimizer: {lr: 0.1}, sgd_optimizer: {lr: 0.1}}"),),
    ),
]

FEATURES_AND_MODELS = [
    Wrong("a feature that is not there in a group", run=(("[user, item, price]", "[user, item, prise]"),)),
    Wrong(
        "a feature name twice",
        run=(("feature_name: price", "feature_name: item"), ("[user, item, price]", "[user, item]")),
    ),
    Wrong(
        "two sizes of one table",
        run=(('item_id", num_buckets: 100', 'item_id", num_buckets: 100, hash_bucket_size: 10'),),
    ),
    Wrong(
        "a group that the model needs",
        run=(("    - {group_name: deep, group_type: DEEP, feature_names: [user, item, price]}\n", ""),),
    ),
    Wrong(
        "tables that cannot be multiplied",
        run=(
            ('item_id", num_buckets: 100, embedding_dim: 4', 'item_id", num_buckets: 100, embedding_dim: 8'),
        ),
    ),
    Wrong("an expression with a wrong side", run=(("user:user_id", "usr:user_id"),)),
    Wrong(
        "a model that comes later",
        run=(
            (DEEPFM, PLE),
            ("  losses: [{binary_cross_entropy: {}}]\n  metrics: [{auc: {}}]\n", ""),
            ("    - {group_name: wide, group_type: WIDE, feature_names: [user, item]}\n", ""),
            ("group_name: deep", "group_name: all"),
        ),
    ),
    Wrong(
        "a metric whose prediction the model does not give", run=(("{auc: {}}", "{recall_at_k: {top_k: 5}}"),)
    ),
    Wrong(
        "a best metric that evaluation does not give",
        run=(
            (
                "train_config:",
                "export_config: {exporter_type: best, best_exporter_metric: aux}\ntrain_config:",
            ),
        ),
    ),
    Wrong(
        "a stream instead of files", run=(("batch_size: 4", "batch_size: 4\n  dataset_type: KafkaDataset"),)
    ),
    Wrong("no label", run=(("  label_fields: [click]\n", ""),)),
    Wrong(
        "a shuffle buffer that holds nothing",
        run=(("batch_size: 4", "batch_size: 4\n  shuffle: true\n  shuffle_buffer: 8"),),
    ),
    Wrong(
        "a key without effect, with --strict",
        run=(("num_epochs: 1", "num_epochs: 1\n  delta_embedding_dump_config: {}"),),
        command="train run.yaml --strict",
    ),
]

FILES = [
    Wrong("no such file", command="train rum.yaml"),
    Wrong("no such file, without an ending", command="train run"),
    Wrong(
        "a folder in its place",
        prepare=lambda folder: (folder / "folder.yaml").mkdir(),
        command="train folder.yaml",
    ),
    Wrong("an ending that is none of ours", files={"run.toml": "x = 1"}, command="train run.toml"),
    Wrong("an empty file", files={"run.yaml": ""}),
    Wrong("bytes", files={"run.yaml": b"\x80\x00"}),
    Wrong("prose", files={"run.yaml": "train my model"}),
    Wrong("not YAML", files={"run.yaml": "train_input_path: [clicks\nmodel_dir: run\n"}),
    Wrong("not JSON", files={"run.json": '{"model_dir": "run",}'}, command="train run.json"),
    Wrong(
        "text format that does not end",
        files={"run.config": 'model_dir: "run"\ndata_config {\n  batch_size: 4\n'},
        command="train run.config",
    ),
    Wrong(
        "a typo in text format",
        files={"run.config": 'model_dir: "run"\ndata_config {\n  batch_sise: 4\n}\n'},
        command="train run.config",
    ),
]


@pytest.mark.parametrize("wrong", [*KEYS_AND_VALUES, *FEATURES_AND_MODELS, *FILES], ids=str)
def test_one_line(desk, assert_refused, wrong):
    assert_refused(desk, wrong)


def test_several_problems_are_told_at_once_in_the_order_of_the_file(desk, assert_expected):
    desk.write_run(
        ("batch_size: 4", "batch_sise: 4"),
        ("FG_NORMAL", "FG_NORML"),
        (SPARSE, "sparse_optimizer: {adagrad_optimizer: {lr: fast}}"),
    )

    done = desk.penstock("train", "run.yaml")

    assert_expected(done.stderr)
    assert done.exit_code == 1
