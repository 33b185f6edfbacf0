"""Wrong places, checkpoints, limits and words on the command line: one line each, and nothing half-written."""

from pathlib import Path

import pytest

from tests.cli.desk import Desk
from tests.end_to_end.wrong_input.mistake import Wrong, assert_told_in_one_line

PREDICT = "predict run.yaml --predict_input_path clicks.parquet --predict_output_path"
WEIGHTS = "run/checkpoints/step-2/rank-00000.safetensors"
FORMS = "a checkpoint (RUN/checkpoints/step-100), a run (RUN), or the best of a run (RUN/best)"
USER_TABLE = "model.model.embedding_group.tables.embedding_bags.user_emb"


def flip_a_bit(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[-5] ^= 1
    file.write_bytes(content)


BEFORE_TRAINING = [
    Wrong(
        "a model_dir that is a file",
        "run.yaml: model_dir: 'run' is a file; choose another folder",
        files={"run": "notes"},
    ),
    Wrong(
        "a model_dir below a file",
        "run.yaml: model_dir: 'clicks.parquet' is a file; choose another folder",
        command="train run.yaml --model_dir clicks.parquet/run",
    ),
    Wrong(
        "a checkpoint to fine-tune that is not there",
        f"train_config.fine_tune_checkpoint: there is no 'nowhere'; give {FORMS}",
        command="train run.yaml --fine_tune_checkpoint nowhere",
    ),
    Wrong(
        "a checkpoint to fine-tune that is not there, checked",
        f"train_config.fine_tune_checkpoint: there is no 'nowhere'; give {FORMS}",
        command="check run.yaml --set train_config.fine_tune_checkpoint=nowhere",
    ),
    Wrong(
        "the best of no run to fine-tune",
        f"train_config.fine_tune_checkpoint: 'best' does not say of which run; give {FORMS}",
        command="train run.yaml --fine_tune_checkpoint best",
    ),
    Wrong(
        "a file to fine-tune",
        f"train_config.fine_tune_checkpoint: 'run.yaml' is a file; give {FORMS}",
        command="train run.yaml --fine_tune_checkpoint run.yaml",
    ),
    Wrong(
        "a folder to fine-tune that is no run",
        "train_config.fine_tune_checkpoint: '.' has neither a manifest.json nor a folder checkpoints; "
        f"give {FORMS}",
        command="train run.yaml --fine_tune_checkpoint .",
    ),
    Wrong(
        "an evaluation before training",
        "run holds no checkpoint; train first, or give --model_dir",
        command="eval run.yaml",
    ),
    Wrong(
        "a prediction before training",
        "run holds no checkpoint; train first, or give --model_dir",
        command=f"{PREDICT} scores",
    ),
    Wrong(
        "an edit of a key that is not there",
        "run.yaml: train_config.num_epoch: unknown path; did you mean 'train_config.num_epochs'?",
        command="train run.yaml --set train_config.num_epoch=3",
    ),
    Wrong(
        "an edit with a value of another type",
        "run.yaml: train_config.num_epochs: is 'three'; expected an integer",
        command="train run.yaml --set train_config.num_epochs=three",
    ),
    Wrong(
        "an edit that matches nothing",
        "run.yaml: feature_configs[id_feature.feature_name=usr].id_feature.embedding_dim: "
        "'[id_feature.feature_name=usr]' matches none of the 3 entries of 'feature_configs'; "
        "did you mean '[id_feature.feature_name=user]'?",
        command="train run.yaml --set feature_configs[id_feature.feature_name=usr].id_feature.embedding_dim=8",
    ),
    Wrong(
        "edits that are no JSON object",
        "--edit_config_json: expected one JSON object of path: value",
        command="train run.yaml --edit_config_json [1]",
    ),
    Wrong(
        "a memory limit that is no size",
        "run.yaml: memory.limit: is 'lots'; expected a size such as 4GiB, 64MiB, 10MB or a number of bytes",
        command="train run.yaml --memory lots",
    ),
    Wrong(
        "a path that is not there, to look at",
        "nowhere: no such file or directory; . holds clicks.parquet, run.yaml",
        command="inspect nowhere",
    ),
    Wrong(
        "a run file, to look at as data",
        "run.yaml: is a run file, not data; look at it with penstock check",
        command="inspect run.yaml",
    ),
    Wrong(
        "sample data of a kind that is not there",
        "unknown kind of sample data 'clickz'; did you mean 'clicks'?",
        command="sample-data --kind clickz --rows 1000 --out sample",
    ),
    Wrong(
        "sample data among other files",
        ".: is not empty; choose another directory, or replace sample data with --overwrite",
        command="sample-data --rows 1000 --out .",
    ),
]

CHECKPOINTS = [
    Wrong(
        "a trained run, trained again",
        "run holds a trained run already; continue it with --continue_train, or choose another --model_dir",
    ),
    Wrong(
        "a checkpoint that is not there",
        "--checkpoint_path: there is no checkpoint 'run/checkpoints/step-7'; known: best, latest, step-2",
        command="eval run.yaml --checkpoint_path run/checkpoints/step-7",
    ),
    Wrong(
        "a file for a checkpoint",
        f"--checkpoint_path: 'run.yaml' is a file; give {FORMS}",
        command="eval run.yaml --checkpoint_path run.yaml",
    ),
    Wrong(
        "a checkpoint to fine-tune that its run does not have",
        "train_config.fine_tune_checkpoint: 'run/checkpoints' has no 'step-7'; did you mean 'step-2'?",
        command="train run.yaml --model_dir other --fine_tune_checkpoint run/checkpoints/step-7",
    ),
    Wrong(
        "a damaged checkpoint",
        "run/checkpoints/step-2: file 'rank-00000.safetensors' was changed or damaged after it was written",
        prepare=lambda folder: flip_a_bit(folder / WEIGHTS),
        command="eval run.yaml",
    ),
    Wrong(
        "a checkpoint with a file missing",
        "run/checkpoints/step-2: file 'progress.json' is missing",
        prepare=lambda folder: (folder / "run/checkpoints/step-2/progress.json").unlink(),
        command="eval run.yaml",
    ),
    Wrong(
        "a checkpoint of another shape",
        f"run/checkpoints/step-2: does not fit this model: not alike: "
        f"{USER_TABLE}.weight (checkpoint float32 [100, 4], model float32 [50, 4]), "
        f"{USER_TABLE}_wide.weight (checkpoint float32 [100, 4], model float32 [50, 4])",
        run=(('user_id", num_buckets: 100', 'user_id", num_buckets: 50'),),
        command="eval run.yaml",
    ),
    Wrong(
        "the best by a metric that was never measured",
        "run.yaml: export_config.best_exporter_metric: evaluation does not give 'loss'; "
        "known: auc, binary_cross_entropy",
        command="eval run.yaml --checkpoint_path best --set export_config.best_exporter_metric=loss",
    ),
    Wrong(
        "a result outside of the model_dir",
        "--eval_result_filename: '../result.json' is not a plain name; the file goes into the model_dir",
        command="eval run.yaml --eval_result_filename ../result.json",
    ),
    Wrong(
        "a result in place of the mark of the best checkpoint",
        "--eval_result_filename: 'best.json' is what the run itself writes there; choose another name",
        command="eval run.yaml --checkpoint_path best --eval_result_filename best.json",
    ),
]

PREDICTIONS = [
    Wrong(
        "a folder that is not empty",
        "--predict_output_path: 'scores' is not empty; choose another folder",
        prepare=lambda folder: (
            (folder / "scores").mkdir(),
            (folder / "scores" / "part-00000.parquet").touch(),
        ),
        command=f"{PREDICT} scores",
    ),
    Wrong(
        "a file in place of the folder",
        "--predict_output_path: 'scores' is a file; name a folder, or one file ending in .parquet or .csv",
        files={"scores": "notes"},
        command=f"{PREDICT} scores",
    ),
    Wrong(
        "a folder in place of the file",
        "--predict_output_path: 'scores.csv' is a folder, but ends like one file; choose another name",
        prepare=lambda folder: (folder / "scores.csv").mkdir(),
        command=f"{PREDICT} scores.csv",
    ),
    Wrong(
        "a folder in a folder that is not there",
        "--predict_output_path: there is no folder 'deep/down'; make it first",
        command=f"{PREDICT} deep/down/scores",
    ),
    Wrong(
        "a reserved column that is not there",
        "clicks.parquet: there is no column 'user'; did you mean 'user_id'?",
        command=f"{PREDICT} scores --reserved_columns user",
    ),
    Wrong(
        "a prediction that the model does not give",
        "--output_columns: the model gives no 'prob'; did you mean 'probs'?",
        command=f"{PREDICT} scores --output_columns prob",
    ),
    Wrong(
        "lists into CSV",
        "column 'tags' holds lists, which CSV cannot; write a .parquet file instead",
        clicks={"tags": [[1, 2]] * 6},
        command=f"{PREDICT} scores.csv --reserved_columns tags",
    ),
    Wrong(
        "a bad row after good ones",
        "clicks.parquet: row 5: column 'user_id': value 600 is outside 0 to 99, the ids of feature 'user'",
        clicks={"user_id": [1, 2, 3, 4, 5, 600]},
        command=f"{PREDICT} scores.parquet",
    ),
]


@pytest.mark.parametrize("wrong", BEFORE_TRAINING, ids=str)
def test_one_line(desk: Desk, wrong: Wrong) -> None:
    assert_told_in_one_line(desk, wrong)


@pytest.mark.parametrize("wrong", [*CHECKPOINTS, *PREDICTIONS], ids=str)
def test_one_line_about_a_trained_run(trained_desk: Desk, wrong: Wrong) -> None:
    assert_told_in_one_line(trained_desk, wrong)
