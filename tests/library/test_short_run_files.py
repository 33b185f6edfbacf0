"""What a run file may leave out, and the forms in which it may come."""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import penstock

SHORTEST = """\
train_input_path: clicks.csv
eval_input_path: clicks.csv
data_config: {label_fields: [click]}
feature_configs:
  - id_feature: {feature_name: user_id, num_buckets: 100}
  - id_feature: {feature_name: item_id, hash_bucket_size: 50}
  - raw_feature: {feature_name: price, expression: price, default_value: "0"}
"""


@pytest.fixture
def short_file(folder: Path) -> Path:
    pyarrow.csv.write_csv(pq.read_table("clicks.parquet"), "clicks.csv")
    path = folder / "first.yaml"
    path.write_text(SHORTEST)
    return path


def test_paths_label_and_features_are_enough(short_file: Path, command: Callable[..., Any]):
    done = command("train", "first.yaml", "--epochs", "3", "--batch-size", "5", "--lr", "0.01")

    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == (
        "not in the run file: fg_mode FG_NORMAL ('item_id' has hash_bucket_size), model_config DeepFM over all "
        "features, sparse_optimizer adagrad 0.03, dense_optimizer adam 0.001, model_dir runs/first"
    )
    written = penstock.load_run("runs/first/run.yaml")
    groups = {group.group_name: group.feature_names for group in written.model.feature_groups}
    every = ["user_id", "item_id", "price"]
    assert groups == {"wide": every, "fm": every[:2], "deep": every}
    assert written.train_config.num_epochs == 3
    assert written.data_config.batch_size == 5
    assert written.train_config.dense_optimizer.adam_optimizer.lr == 0.01
    assert written.train_config.sparse_optimizer.adagrad_optimizer.lr == 0.01
    assert penstock.evaluate(written) == penstock.evaluate(penstock.load_run("first.yaml"))


def test_a_semicolon_file_in_folders_by_day_trains_too(folder: Path, command: Callable[..., Any]):
    """As a European office and a data lake give it: `;`, decimal commas, latin-1, and the day in the path."""
    rows = pq.read_table("clicks.parquet").to_pylist()
    for day in ("2024-01-01", "2024-01-02"):
        Path(f"lake/dt={day}").mkdir(parents=True)
        lines = [f"{row['user_id']};Köln;1,{row['user_id']};{row['click']}" for row in rows]
        text = "\n".join(["user_id;city;price;click", *lines])
        Path(f"lake/dt={day}/part-0.csv").write_text(text, encoding="latin-1")
    Path("lake.yaml").write_text(
        "train_input_path: lake\neval_input_path: lake/dt=2024-01-02\n"
        "data_config: {label_fields: [click], encoding: latin-1, decimal: ','}\n"
        "feature_configs:\n"
        "  - id_feature: {feature_name: user_id, num_buckets: 100}\n"
        "  - id_feature: {feature_name: city, hash_bucket_size: 50}\n"
        "  - id_feature: {feature_name: dt, hash_bucket_size: 50}\n"
        "  - raw_feature: {feature_name: price}\n"
    )

    done = command("train", "lake.yaml")

    assert done.code == 0, done.err
    assert "lake/dt=2024-01-01/part-0.csv: columns are separated by ';' (data_config.delimiter)" in done.err
    scores = (
        "--predict_input_path",
        "lake",
        "--predict_output_path",
        "scores.parquet",
        "--reserved_columns",
        "dt",
    )
    assert command("predict", "lake.yaml", *scores).code == 0
    assert set(pq.read_table("scores.parquet")["dt"].to_pylist()) == {"2024-01-01", "2024-01-02"}


@pytest.mark.parametrize("ending", ["", ".0"])
def test_ids_hash_alike_in_every_format(folder: Path, ending: str):
    """Trained on ids such as 138 or 138.0 in CSV, a model scores the same ids in Parquet alike."""
    table = pq.read_table("clicks.parquet")
    users = table["user_id"].to_pylist()
    pq.write_table(table.set_column(0, "user_id", [users]), "ids.parquet")
    names = table.column_names
    rows = [
        [f"{value}{ending}" if name == "user_id" else value for name, value in row.items()]
        for row in table.to_pylist()
    ]
    Path("ids.csv").write_text("\n".join(",".join(map(str, row)) for row in [names, *rows]))
    Path("ids.yaml").write_text(
        "train_input_path: ids.csv\neval_input_path: ids.csv\ndata_config: {label_fields: [click]}\n"
        "feature_configs:\n  - id_feature: {feature_name: user_id, hash_bucket_size: 1000}\n"
    )
    run = penstock.load_run("ids.yaml")
    penstock.train(run)

    expected = penstock.evaluate(run)

    assert penstock.evaluate(penstock.load_run("ids.yaml", ["eval_input_path=ids.parquet"])) == expected


def test_text_format_keeps_its_rules(folder: Path):
    feature = 'feature_configs { id_feature { feature_name: "f" hash_bucket_size: 9 embedding_dim: 4 } }'
    Path("old.config").write_text(feature)
    Path("short.config").write_text(f"{feature}\ntrain_config {{ }}")

    run = penstock.load_run("old.config")

    data = run.data_config
    assert (data.fg_mode, data.delimiter, data.with_header) == ("FG_NONE", ",", False)
    assert (run.model_dir, run.model, run.train_config) == ("", None, None)
    with pytest.raises(penstock.ConfigError) as told:
        penstock.load_run("short.config")
    assert str(told.value).splitlines()[1:] == [
        "  line 2, column 1: train_config.dense_optimizer: is required",
        "  line 2, column 1: train_config: one of num_steps, num_epochs is required",
        "  line 2, column 1: train_config.sparse_optimizer: is required: 'f' has an embedding table",
    ]


@pytest.mark.parametrize(
    ("options", "mode"),
    [
        ("num_buckets: 9", "FG_NONE"),
        ('num_buckets: 9, expression: "user:f"', "FG_NORMAL"),
        ("num_buckets: 9, expression: f", "FG_NORMAL"),
        ("hash_bucket_size: 9", "FG_NORMAL"),
        ("vocab_list: [a]", "FG_NORMAL"),
    ],
)
def test_the_mode_follows_from_the_features(options: str, mode: str, caplog: pytest.LogCaptureFixture):
    text = f"feature_configs:\n  - id_feature: {{feature_name: f, {options}}}\n"

    with caplog.at_level(logging.INFO):
        run = penstock.load_run(text)

    assert run.data_config.fg_mode == mode
    assert f"fg_mode {mode} (" in caplog.text
    written = penstock.load_run(text, {"data_config.fg_mode": "FG_DAG"})
    assert written.data_config.fg_mode == "FG_DAG"


def test_numbers_alone_train_too(short_file: Path):
    options = {"fg_encoded_default_value": "0"}
    features = [{"raw_feature": {"feature_name": name, **options}} for name in ("user_id", "price")]

    run = penstock.load_run("first.yaml", {"feature_configs": features})
    result = penstock.train(run)

    assert [group.group_name for group in run.model.feature_groups] == ["wide", "deep"]
    assert "auc" in result.metrics


def test_a_run_file_as_a_mapping_or_as_text(short_file: Path):
    data = {
        "train_input_path": "clicks.csv",
        "data_config": {"label_fields": ["click"]},
        "feature_configs": [{"raw_feature": {"feature_name": "price"}}],
    }
    text = (
        "{train_input_path: clicks.csv, data_config: {label_fields: [click]}, "
        "feature_configs: [{raw_feature: {feature_name: price}}]}"
    )

    assert penstock.load_run(data) == penstock.load_run(text)
    assert penstock.load_run(SHORTEST, ["data_config.batch_size=7"]).data_config.batch_size == 7
    assert "model_config" not in data
    with pytest.raises(penstock.ConfigError, match=r"^model_dir: is required by this command; set it"):
        penstock.train(penstock.load_run(data))
    with pytest.raises(penstock.ConfigError) as told:
        penstock.load_run({"data_confg": {}})
    assert str(told.value) == "the run file: data_confg: unknown key; did you mean 'data_config'?"
    with pytest.raises(penstock.ConfigError, match=r"^nowhere.yaml: there is no such file"):
        penstock.load_run("nowhere.yaml")


def test_a_path_of_another_format_than_the_run_file_says(folder: Path, command: Callable[..., Any]):
    text = (folder / "run.yaml").read_text().replace("{batch_size", "{dataset_type: OdpsDataset, batch_size")
    Path("odps.yaml").write_text(text.replace("clicks.parquet", "odps://project/tables/clicks"))
    paths = ("--train_input_path", "clicks.parquet", "--eval_input_path", "clicks.parquet")

    trained = command("train", "odps.yaml", *paths)
    scores = ("--predict_input_path", "clicks.parquet", "--predict_output_path", "scores.parquet")
    scored = command("predict", "odps.yaml", *scores)

    assert (trained.code, scored.code) == (0, 0), trained.err + scored.err
    line = "clicks.parquet is read as ParquetDataset; data_config.dataset_type is OdpsDataset"
    assert trained.err.count(f"train_input_path: {line}") == 1
    assert scored.err.count(f"predict_input_path: {line}") == 1
    kept = penstock.load_run("odps.yaml", ["train_input_path=x.csv", "data_config.dataset_type=CsvDataset"])
    assert kept.data_config.dataset_type == "CsvDataset"
    assert penstock.load_run("odps.yaml").data_config.dataset_type == "OdpsDataset"


def test_the_best_of_a_metric_that_is_there_twice(folder: Path):
    edits = {
        "model_config.metrics": [{"accuracy": {"threshold": 0.3}}, {"accuracy": {"threshold": 0.6}}],
        "export_config.best_exporter_metric": "accuracy@0.6",
        "train_config.early_stopping": {"metric": "accuracy@0.3", "patience": 50},
    }
    run = penstock.load_run("run.yaml", edits)

    result = penstock.train(run)

    assert list(result.metrics) == ["accuracy@0.3", "accuracy@0.6"]
    assert penstock.evaluate(run, "best").keys() >= {"accuracy@0.3", "accuracy@0.6"}
    with pytest.raises(
        penstock.ConfigError, match=r"evaluation does not give 'accuracy'; did you mean 'accuracy@"
    ):
        penstock.train(
            penstock.load_run("run.yaml", {**edits, "export_config.best_exporter_metric": "accuracy"})
        )
