"""From sample data to predictions, by the commands of the README."""

import json
import shutil

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
    final = penstock.load_run(run / "run.yaml")
    assert (final.data_config.batch_size, final.train_config.num_epochs, final.memory.limit) == (512, 2, None)


def test_evaluation_equals_scikit_learn_on_the_predictions(trained, tmp_path):
    scored = trained.penstock(
        "predict", "run.yaml", "--predict_input_path", f"{trained.data}/test/*.parquet",
        "--predict_output_path", tmp_path / "scores.parquet", "--batch_size", "77",
        "--reserved_columns", "click,user_id",
    )  # fmt: skip
    given = pq.read_table(sorted((trained.data / "test").glob("*.parquet"))[0], columns=["click", "user_id"])
    evaluated = json.loads((trained.folder / "run" / "eval_result.jsonl").read_text().splitlines()[-1])
    assert scored.code == 0, scored.err
    table = pq.read_table(tmp_path / "scores.parquet")
    scores = table.to_pydict()

    assert table.slice(0, given.num_rows).select(["click", "user_id"]) == given  # in input order
    assert evaluated["rows"] == len(scores["click"]) == 2_000
    assert evaluated["metrics"]["auc"] == pytest.approx(
        roc_auc_score(scores["click"], scores["probs"]), abs=1e-4
    )
    assert evaluated["metrics"]["log_loss"] == pytest.approx(
        log_loss(scores["click"], scores["probs"]), abs=1e-6
    )
    assert evaluated["metrics"]["auc"] > 0.6


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


def test_the_names_of_older_scripts_work(trained_copy):
    done = trained_copy.penstock("train_eval", "--pipeline_config_path", "run.yaml", "--continue_train")

    assert done.code == 0, done.err
    assert "continuing from run/checkpoints/step-72" in done.err
    steps = [
        json.loads(line)["step"]
        for line in (trained_copy.folder / "run/eval_result.jsonl").read_text().splitlines()
    ]
    assert steps == [10, 20, 30, 40, 50, 60, 70, 72]  # what was evaluated before is not evaluated again


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
