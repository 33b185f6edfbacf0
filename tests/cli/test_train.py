"""`penstock train`: what it reports and what it leaves."""

import shutil

from typer.testing import Result

import penstock
from penstock.run.run_config import load_run
from tests.cli.desk import Desk

IGNORED = ("num_epochs: 1", "num_epochs: 1\n  delta_embedding_dump_config: {}")
UNUSED = (("[user, item]}", "[user]}"), ("[user, item, price]", "[user, price]"))


def test_what_has_no_effect_is_reported_once_and_the_final_config_is_written_as_text_too(desk: Desk):
    desk.write_run(IGNORED, *UNUSED, ("eval_input_path: clicks.parquet\n", ""))

    done = desk.penstock("train", "run.yaml", "--text_config", "--set", "data_config.batch_size=3")

    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines()[0] == (
        "warning: train_config.delta_embedding_dump_config: ignored (changed embeddings are not dumped)"
    )
    assert done.stderr.count("delta_embedding_dump_config") == 1
    assert done.stderr.count("1 of 3 features are in no feature group and are not read: item\n") == 1
    assert done.stdout.startswith("result  nothing was evaluated\n")
    assert not (desk.folder / "run" / "eval_result.jsonl").exists()
    written = load_run(desk.folder / "run" / "run.config")
    explicit = {"data_config.delimiter": ",", "data_config.with_header": False}
    assert written == load_run(desk.folder / "run" / "run.yaml", explicit)
    assert written.data_config.batch_size == 3


def test_days_of_new_files_one_after_another_with_a_kill_in_between(desk: Desk):
    """Each message is right, and what it says works."""
    desk.write_clicks("monday.parquet")
    desk.write_clicks("tuesday.parquet", user_id=[11, 12, 13, 14, 15, 16])
    steps_of_2 = ["--set", "data_config.batch_size=2", "--set", "train_config.save_checkpoints_steps=2"]

    def train(day: str, *words: str) -> Result:
        return desk.penstock("train", "run.yaml", "--train_input_path", f"{day}.parquet", *steps_of_2, *words)

    assert "; 3 steps, 1 epoch, 6 rows" in train("monday").stdout
    other_files = train("tuesday", "--continue_train")
    assert "tuesday.parquet: is not the file that the position was saved with" in other_files.stderr
    assert other_files.exit_code == 1
    assert other_files.stderr.splitlines()[-1].endswith(
        "; put that file back, go on with these (train: --new_data), "
        "or start over (train: another --model_dir; --fine_tune_checkpoint keeps the model)"
    )
    assert "; 6 steps, 2 epochs, 12 rows" in train("tuesday", "--new_data").stdout

    shutil.rmtree(desk.folder / "run/checkpoints/step-6")  # as if it had been killed after step 4
    again = train("tuesday", "--new_data", "--model_dir", "copy")
    assert "no whole checkpoint in copy/checkpoints; starting at step 0" in again.stderr
    killed_then_continued = train("tuesday", "--continue_train")
    assert "; 6 steps, 2 epochs, 12 rows" in killed_then_continued.stdout
    assert "warning" not in killed_then_continued.stderr

    finished = train("tuesday", "--continue_train")
    assert (
        "warning: nothing was left to train: train_config.num_epochs is reached; raise it, or give new files "
        "with --new_data" in finished.stderr
    )


def test_files_that_are_not_new_are_told(desk: Desk):
    steps_of_2 = ["--set", "data_config.batch_size=2", "--set", "train_config.save_checkpoints_steps=2"]
    desk.penstock("train", "run.yaml", *steps_of_2)
    shutil.copytree("run", "whole")
    shutil.rmtree(desk.folder / "run/checkpoints/step-3")

    again = desk.penstock("train", "run.yaml", *steps_of_2, "--new_data")
    whole = desk.penstock("train", "run.yaml", *steps_of_2, "--new_data", "--model_dir", "whole")

    assert (
        "warning: --new_data: the run stopped in the middle of these files, which are now read from their first row "
        "again; --continue_train would go on where it stopped" in again.stderr
    )
    assert "; 5 steps, 2 epochs, 10 rows" in again.stdout
    assert (
        "warning: --new_data: the files are those of before, which were read to their end; they are trained again\n"
        in whole.stderr
    )
    assert "; 6 steps, 2 epochs, 12 rows" in whole.stdout


def test_a_run_that_stopped_early_trains_on_new_data(desk: Desk):
    stopping = [
        *("--set", "data_config.batch_size=2", "--set", "train_config.save_checkpoints_steps=1"),
        *("--set", "train_config.early_stopping={metric: auc, patience: 1, min_delta: 0.9}"),
    ]
    desk.write_clicks("tuesday.parquet", user_id=[11, 12, 13, 14, 15, 16])

    stopped = desk.penstock("train", "run.yaml", *stopping)
    again = desk.penstock("train", "run.yaml", *stopping, "--continue_train")
    went_on = desk.penstock(
        "train", "run.yaml", *stopping, "--train_input_path", "tuesday.parquet", "--new_data"
    )

    assert "; 2 steps" in stopped.stdout
    assert "nothing was left" not in stopped.stderr + went_on.stderr
    assert (
        "warning: nothing was left to train: early stopping has ended this run; raise "
        "train_config.early_stopping.patience, or give new files with --new_data" in again.stderr
    )
    assert "; 4 steps" in went_on.stdout


def test_a_run_that_goes_on_reports_changed_settings_and_takes_no_other_model(trained_desk: Desk):
    shutil.copytree("run", "other")
    tune = ["--fine_tune_checkpoint", "other"]
    again = ["train", "run.yaml", "--continue_train", "--set", "train_config.num_epochs=2"]
    lower_rate = ["--set", "train_config.dense_optimizer.adam_optimizer.lr=0.03"]

    dropped = trained_desk.penstock(*again, *tune, *lower_rate)
    same = trained_desk.penstock(*again, *tune, *lower_rate)
    begun = trained_desk.penstock("train", "run.yaml", "--model_dir", "tuned", "--continue_train", *tune)
    went_on = trained_desk.penstock(*again, "--model_dir", "tuned", *tune)

    assert (
        "changed settings: train_config.dense_optimizer.adam_optimizer.lr 0.1 -> 0.03, "
        "train_config.num_epochs 1 -> 2" in dropped.stderr
    )
    assert (
        "warning: --fine_tune_checkpoint: 'other' is not taken, since the run goes on from "
        "run/checkpoints/step-2; to start from it, choose another --model_dir\n" in dropped.stderr
    )
    assert "changed settings" not in same.stderr
    assert "fine-tuning from other/checkpoints/step-2" in begun.stderr  # there was nothing to go on with
    assert "is not taken" not in begun.stderr + went_on.stderr
    assert "continuing from tuned/checkpoints/step-2" in went_on.stderr


def test_a_run_that_is_stopped_before_it_begins_says_that_nothing_is_there(desk: Desk, monkeypatch):
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.run.train.plan_training", interrupted)

    done = desk.penstock("train", "run.yaml")

    assert done.stderr == "error: stopped before the first step: nothing was trained, and nothing is saved\n"
    assert done.exit_code == 130


def test_keys_come_first_then_edits_then_those_of_json_and_hyphens_are_underscores(desk: Desk):
    desk.write_clicks("other_clicks-1.parquet")

    done = desk.penstock(
        "train", "run.yaml",
        "--train-input_path", "other_clicks-1.parquet",
        "--edit_config_json", '{"data_config.batch_size": 2, "train_config.num_epochs": 3}',
        "--set", "data_config.batch_size=5",
        "--set", "memory.limit=6GiB",
        "--set", "train_config.num_epochs=7",
        "--memory", "5GiB",
    )  # fmt: skip

    assert done.exit_code == 0, done.stderr
    run = penstock.load_run("run/run.yaml")
    assert run.train_input_path == "other_clicks-1.parquet"
    assert run.memory.limit == 6 * 2**30
    assert (run.data_config.batch_size, run.train_config.num_epochs) == (2, 3)
