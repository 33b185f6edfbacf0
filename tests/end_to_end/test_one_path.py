"""From sample data to predictions, by the commands of the README."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import log_loss, roc_auc_score

import penstock
from penstock.training.model_dir import NAMES_OF_A_RUN
from tests.end_to_end.conftest import Workplace


@pytest.fixture
def trained_copy(trained, tmp_path):
    """A trained run for commands that write into it; others go on with the one that all share."""
    folder = shutil.copytree(trained.folder, tmp_path / "copy")
    return Workplace(folder, trained.data, folder / "run.yaml")


def test_a_trained_run_holds_all_it_should(trained):
    run = trained.folder / "run"

    assert (run / "run.yaml").exists()
    assert "torch" in json.loads((run / "version").read_text())["packages"]
    steps = [json.loads(line)["step"] for line in (run / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)
    assert steps[-1] == 72  # 18,000 rows in batches of 512, twice
    assert not list(run.glob("**/*tmp*"))
    assert {path.name for path in run.iterdir()} <= NAMES_OF_A_RUN


def test_evaluation_equals_scikit_learn_on_the_predictions(trained, tmp_path):
    scored = trained.penstock(
        "predict", "run.yaml", "--predict_input_path", f"{trained.data}/test/*.parquet",
        "--predict_output_path", tmp_path / "scores.parquet", "--reserved_columns", "click,user_id",
    )  # fmt: skip
    evaluated = json.loads((trained.folder / "run" / "eval_result.jsonl").read_text().splitlines()[-1])
    scores = pq.read_table(tmp_path / "scores.parquet").to_pydict()

    assert scored.code == 0, scored.err
    assert evaluated["rows"] == len(scores["click"]) == 2_000
    assert evaluated["metrics"]["auc"] == pytest.approx(
        roc_auc_score(scores["click"], scores["probs"]), abs=1e-4
    )
    assert evaluated["metrics"]["log_loss"] == pytest.approx(
        log_loss(scores["click"], scores["probs"]), abs=1e-6
    )
    assert evaluated["metrics"]["auc"] > 0.6


def test_predictions_are_in_input_order_with_the_reserved_columns(trained, tmp_path):
    done = trained.penstock(
        "predict", "run.yaml", "--predict_input_path", f"{trained.data}/test/*.parquet",
        "--predict_output_path", tmp_path / "scores", "--reserved_columns", "user_id,item_id", "--batch_size", "77",
    )  # fmt: skip
    parts = sorted((tmp_path / "scores").iterdir())
    given = pq.read_table(
        sorted((trained.data / "test").glob("*.parquet"))[0], columns=["user_id", "item_id"]
    )

    assert done.code == 0, done.err
    assert [part.name for part in parts] == ["part-00000.parquet"]
    scored = pq.read_table(parts[0])
    assert scored.schema.names == ["user_id", "item_id", "logits", "probs"]
    assert scored.slice(0, given.num_rows).select(["user_id", "item_id"]) == given


def test_eval_of_the_best_checkpoint(trained, trained_copy):
    best = trained_copy.penstock(
        "eval", "run.yaml", "--checkpoint_path", "best", "--eval_result_filename", "of_best.json"
    )
    records = [
        json.loads(line) for line in (trained.folder / "run/eval_result.jsonl").read_text().splitlines()
    ]
    expected = max(records, key=lambda record: record["metrics"]["auc"])

    assert best.code == 0, best.err
    result = json.loads((trained_copy.folder / "run/of_best.json").read_text())
    assert result["step"] == expected["step"]
    assert result["metrics"] == expected["metrics"]


def test_a_trained_folder_is_not_trained_again_by_mistake(trained):
    again = trained.penstock("train", "run.yaml")

    assert again.code == 1
    assert again.err.strip() == (
        "error: run holds a trained run already; continue it with --continue_train, or choose another --model_dir"
    )


def test_the_names_of_older_scripts_work(trained_copy):
    done = trained_copy.penstock("train_eval", "--pipeline_config_path", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert "continuing from run/checkpoints/step-72" in done.err
    steps = [
        json.loads(line)["step"]
        for line in (trained_copy.folder / "run/eval_result.jsonl").read_text().splitlines()
    ]
    assert steps == [10, 20, 30, 40, 50, 60, 70, 72]  # what was evaluated before is not evaluated again


def test_run_yaml_is_the_final_config(trained):
    again = penstock.load_run(trained.folder / "run" / "run.yaml")

    assert again.data_config.batch_size == 512
    assert again.train_config.num_epochs == 2
    assert again.memory.limit is None


def test_predict_as_a_function_gives_a_table(trained, monkeypatch):
    monkeypatch.chdir(trained.folder)
    run = penstock.load_run("run.yaml")
    table = pq.read_table(sorted((trained.data / "test").glob("*.parquet"))[0])

    by_table = penstock.predict(run, table)
    by_path = penstock.predict(run, f"{trained.data}/test/*.parquet")

    assert by_table.schema.names == ["logits", "probs"]
    np.testing.assert_allclose(by_table["probs"], by_path["probs"][: table.num_rows], atol=1e-6)


def test_the_end_of_an_epoch_that_is_the_turn_of_steps_too_is_saved_and_evaluated_once(workplace):
    done = workplace.penstock(
        "train", "run.yaml", "--set", "train_config.save_checkpoints_steps=18",
        "--set", "train_config.save_checkpoints_epochs=1",
    )  # fmt: skip

    assert done.code == 0, done.err
    lines = (workplace.folder / "run/eval_result.jsonl").read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [18, 36, 54, 72]
    assert sorted(path.name for path in (workplace.folder / "run/checkpoints").iterdir()) == [
        "step-18",
        "step-36",
        "step-54",
        "step-72",
    ]
