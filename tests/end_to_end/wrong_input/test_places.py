"""Wrong places, checkpoints, limits and words on the command line: one line each, and nothing half-written."""

from pathlib import Path

import pytest

from tests.end_to_end.wrong_input.mistake import Wrong

PREDICT = "predict run.yaml --predict_input_path clicks.parquet --predict_output_path"
WEIGHTS = "run/checkpoints/step-2/rank-00000.safetensors"


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


BEFORE_TRAINING = [
    Wrong("a model_dir that is a file", files={"run": "notes"}),
    Wrong("a model_dir below a file", command="train run.yaml --model_dir clicks.parquet/run"),
    Wrong(
        "a checkpoint to fine-tune that is not there", command="train run.yaml --fine_tune_checkpoint nowhere"
    ),
    Wrong(
        "a checkpoint to fine-tune that is not there, checked",
        command="check run.yaml --set train_config.fine_tune_checkpoint=nowhere",
    ),
    Wrong("the best of no run to fine-tune", command="train run.yaml --fine_tune_checkpoint best"),
    Wrong("a file to fine-tune", command="train run.yaml --fine_tune_checkpoint run.yaml"),
    Wrong("a folder to fine-tune that is no run", command="train run.yaml --fine_tune_checkpoint ."),
    Wrong("an evaluation before training", command="eval run.yaml"),
    Wrong("a prediction before training", command=f"{PREDICT} scores"),
    Wrong("an edit of a key that is not there", command="train run.yaml --set train_config.num_epoch=3"),
    Wrong(
        "an edit with a value of another type", command="train run.yaml --set train_config.num_epochs=three"
    ),
    Wrong(
        "an edit that matches nothing",
        command="train run.yaml --set feature_configs[id_feature.feature_name=usr].id_feature.embedding_dim=8",
    ),
    Wrong("edits that are no JSON object", command="train run.yaml --edit_config_json [1]"),
    Wrong("a memory limit that is no size", command="train run.yaml --memory lots"),
    Wrong("a path that is not there, to look at", command="inspect nowhere"),
    Wrong("a run file, to look at as data", command="inspect run.yaml"),
    Wrong(
        "sample data of a kind that is not there",
        command="sample-data --kind clickz --rows 1000 --out sample",
    ),
    Wrong("sample data among other files", command="sample-data --rows 1000 --out ."),
]

CHECKPOINTS = [
    Wrong("a trained run, trained again"),
    Wrong("a checkpoint that is not there", command="eval run.yaml --checkpoint_path run/checkpoints/step-7"),
    Wrong("a file for a checkpoint", command="eval run.yaml --checkpoint_path run.yaml"),
    Wrong(
        "a checkpoint to fine-tune that its run does not have",
        command="train run.yaml --model_dir other --fine_tune_checkpoint run/checkpoints/step-7",
    ),
    Wrong(
        "a damaged checkpoint", prepare=lambda folder: flip_a_bit(folder / WEIGHTS), command="eval run.yaml"
    ),
    Wrong(
        "a checkpoint with a file missing",
        prepare=lambda folder: (folder / "run/checkpoints/step-2/progress.json").unlink(),
        command="eval run.yaml",
    ),
    Wrong(
        "a checkpoint of another shape",
        run=(('user_id", num_buckets: 100', 'user_id", num_buckets: 50'),),
        command="eval run.yaml",
    ),
    Wrong(
        "the best by a metric that was never measured",
        command="eval run.yaml --checkpoint_path best --set export_config.best_exporter_metric=loss",
    ),
    Wrong("a result outside of the model_dir", command="eval run.yaml --eval_result_filename ../result.json"),
    Wrong(
        "a result in place of the mark of the best checkpoint",
        command="eval run.yaml --checkpoint_path best --eval_result_filename best.json",
    ),
]

PREDICTIONS = [
    Wrong(
        "a folder that is not empty",
        prepare=lambda folder: (
            (folder / "scores").mkdir(),
            (folder / "scores" / "part-00000.parquet").touch(),
        ),
        command=f"{PREDICT} scores",
    ),
    Wrong("a file in place of the folder", files={"scores": "notes"}, command=f"{PREDICT} scores"),
    Wrong(
        "a folder in place of the file",
        prepare=lambda folder: (folder / "scores.csv").mkdir(),
        command=f"{PREDICT} scores.csv",
    ),
    Wrong("a folder in a folder that is not there", command=f"{PREDICT} deep/down/scores"),
    Wrong("a reserved column that is not there", command=f"{PREDICT} scores --reserved_columns user"),
    Wrong("a prediction that the model does not give", command=f"{PREDICT} scores --output_columns prob"),
    Wrong(
        "lists into CSV",
        clicks={"tags": [[1, 2]] * 6},
        command=f"{PREDICT} scores.csv --reserved_columns tags",
    ),
    Wrong(
        "a bad row after good ones",
        clicks={"price": [1.0, 2.0, 3.0, 4.0, 5.0, float("inf")]},
        command=f"{PREDICT} scores.parquet",
    ),
]


@pytest.mark.parametrize("wrong", BEFORE_TRAINING, ids=str)
def test_one_line(desk, assert_refused, wrong):
    assert_refused(desk, wrong)


@pytest.mark.parametrize("wrong", [*CHECKPOINTS, *PREDICTIONS], ids=str)
def test_one_line_about_a_trained_run(trained_desk, assert_refused, wrong):
    assert_refused(trained_desk, wrong)
