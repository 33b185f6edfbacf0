"""Samples, batch files, stores and TFRecord files: what is written is what is read."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import penstock

SAMPLES = [
    {"features": [0.5, 3.0], "labels": {"move": 1}, "masks": {"move": [0, 1, 1]}},
    {"features": [0.0, 7.0], "labels": {"move": 2}, "masks": {"move": [1, 0, 1]}},
]

IMITATION = """\
train_input_path: store/*_train*
eval_input_path: store/*_val*
model_dir: run
memory: {limit: 8GiB}
data_config: {dataset_type: NumpyDataset, batch_size: 4, fg_mode: FG_NORMAL, label_fields: [labels_move]}
feature_configs:
  - raw_feature: {feature_name: state, expression: "user:strategic_features", value_dim: 2}
model_config:
  feature_groups:
    - {group_name: all, group_type: DEEP, feature_names: [state]}
  simple_multi_task:
    task_towers:
      - tower_name: move
        label_name: labels_move
        mask_name: masks_move
        num_class: 3
        mlp: {hidden_units: [4]}
        losses: [{softmax_cross_entropy: {}}]
        metrics: [{accuracy: {}}]
train_config:
  num_epochs: 1
  dense_optimizer: {adam_optimizer: {lr: 0.01}}
"""


def test_samples_and_arrays():
    arrays = penstock.samples_to_arrays(SAMPLES)

    assert {name: (array.dtype.name, array.shape) for name, array in arrays.items()} == {
        "strategic_features": ("float32", (2, 2)),
        "labels_move": ("int16", (2,)),
        "masks_move": ("int8", (2, 3)),
    }
    assert list(penstock.arrays_to_samples(arrays)) == SAMPLES


def test_prepare_merge_read_and_train(game_folder: Path):
    prepared = penstock.prepare("prep.yaml")
    assert (prepared.prepared.num_samples, prepared.merged.num_samples) == (20, {"train": 15, "val": 5})

    rows = [row for split in ("train", "val") for row in penstock.read_numpy(f"store/*_{split}*")]
    seen = {(int(row["labels_move"]), *row["strategic_features"].tolist()) for row in rows}
    assert seen == {(row % 3, game, game * 100 + row + 0.5) for game in range(4) for row in range(5)}

    (game_folder / "run.yaml").write_text(IMITATION)
    result = penstock.train(penstock.load_run("run.yaml"))
    assert (result.steps, result.rows) == (4, 15)
    assert result.metrics.keys() == {"accuracy_move"}


def test_a_store_of_one_split_is_read_as_a_folder(game_folder: Path):
    penstock.prepare("prep.yaml", merge=False)
    penstock.merge("batches", "one", heads="npy")

    assert len(penstock.read_store("one")) == 20
    penstock.merge("batches", "two", splits={"train": 0.5, "val": 0.5, "test": 0.0})
    with pytest.raises(penstock.DataError, match=r"two: is a store with the splits train, val; name one of"):
        penstock.read_store("two")


def test_what_is_prepared_is_kept(game_folder: Path):
    penstock.prepare("prep.yaml")
    before = (game_folder / "store" / "X_train.npy").stat().st_mtime_ns

    again = penstock.prepare("prep.yaml")

    assert again.merged.was_whole
    assert (game_folder / "store" / "X_train.npy").stat().st_mtime_ns == before


TYPED = pa.table(
    {
        "word": ["ann", "", "Zoë"],
        "age": [31, -4, 2**40],
        "score": pa.array([0.5, 1.5, -2.5], pa.float32()),
        "clicks": [[1, 2], [], [3]],
    }
)


@pytest.mark.parametrize(("name", "compression"), [("data.tfrecord", None), ("data.tfrecord.gz", "gzip")])
def test_tfrecords_are_read_as_they_were_written(tmp_path: Path, name: str, compression: str | None):
    files = penstock.write_tfrecord(tmp_path / name, TYPED, files=2, compression=compression)

    dataset = penstock.read_tfrecord(files)

    assert len(files) == 2
    assert sorted(row["age"] for row in dataset) == [-4, 31, 2**40]
    by_age = {int(row["age"]): row for row in dataset}
    assert [by_age[age]["word"] for age in (31, -4, 2**40)] == ["ann", "", "Zoë"]
    assert [by_age[age]["clicks"].tolist() for age in (31, -4, 2**40)] == [[1, 2], [], [3]]


@pytest.mark.slow
def test_tensorflow_reads_what_is_written(tmp_path: Path):
    tf = pytest.importorskip("tensorflow", reason="TensorFlow is an extra: pip install 'penstock[tf]'")
    [file] = penstock.write_tfrecord(tmp_path / "data.tfrecord", TYPED)
    described = {
        "word": tf.io.FixedLenFeature([], tf.string),
        "age": tf.io.FixedLenFeature([], tf.int64),
        "score": tf.io.FixedLenFeature([], tf.float32),
        "clicks": tf.io.RaggedFeature(tf.int64),
    }

    rows = [tf.io.parse_single_example(record, described) for record in tf.data.TFRecordDataset(file)]

    assert [
        {
            name: value.numpy().decode() if name == "word" else value.numpy().tolist()
            for name, value in row.items()
        }
        for row in rows
    ] == TYPED.to_pylist()


def test_a_manifest_tells_what_a_store_holds(game_folder: Path):
    penstock.prepare("prep.yaml")

    manifest = json.loads((game_folder / "store" / "manifest.json").read_text())

    assert (manifest["kind"], manifest["version"], manifest["splits"]) == (
        "penstock store",
        1,
        {"train": 15, "val": 5},
    )
    assert sorted(file["name"] for file in manifest["files"]) == [
        "X_train.npy",
        "X_val.npy",
        "labels_train.npz",
        "labels_val.npz",
        "masks_train.npz",
        "masks_val.npz",
    ]
