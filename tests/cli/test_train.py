"""`penstock train`: what it tells and what it leaves."""

import json
from pathlib import Path

import pytest

from penstock.pipeline.run_files import load_run
from tests.cli.desk import Desk

IGNORED = ("num_epochs: 1", "num_epochs: 1\n  delta_embedding_dump_config: {}")
UNUSED = (("[user, item]}", "[user]}"), ("[user, item, price]", "[user, price]"))


def test_tells_what_it_did(desk: Desk):
    done = desk.penstock("train", "run.yaml")

    told = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if not line.startswith(" "))
    assert done.exit_code == 0, done.stderr
    assert list(told) == ["trained", "speed", "eval", "memory", "by", "run", "report"]
    assert told["trained"] == "2 steps, 1 epoch, 6 rows"
    assert told["run"] == "run (checkpoint step-2)"
    assert told["report"] == "run/report.html"


def test_a_key_without_effect_is_told_once(desk: Desk):
    desk.write_run(IGNORED)

    done = desk.penstock("train", "run.yaml")

    assert done.exit_code == 0, done.stderr
    assert done.stderr.splitlines()[0] == (
        "warning: train_config.delta_embedding_dump_config: ignored (changed embeddings are not dumped)"
    )
    assert done.stderr.count("delta_embedding_dump_config") == 1


def test_a_feature_that_no_group_has_is_told_once(desk: Desk):
    desk.write_run(*UNUSED)

    done = desk.penstock("train", "run.yaml")

    assert done.exit_code == 0, done.stderr
    assert done.stderr.count("1 of 3 features are in no feature group and are not read: item\n") == 1


@pytest.mark.parametrize("option", ["--continue_train", "--resume"])
def test_continues(trained_desk: Desk, option: str):
    done = trained_desk.penstock("train", "run.yaml", option, "--set", "train_config.num_epochs=2")

    assert done.exit_code == 0, done.stderr
    assert "continuing from run/checkpoints/step-2" in done.stderr
    assert done.stdout.splitlines()[0] == "trained   4 steps, 2 epochs, 12 rows"


def test_other_data_cannot_be_continued_on_and_the_cure_that_is_told_works(trained_desk: Desk):
    trained_desk.write_clicks(user_id=[11, 12, 13, 14, 15, 16])
    more = ["--set", "train_config.num_epochs=2"]

    done = trained_desk.penstock("train", "run.yaml", "--continue_train", *more)
    tune = ["--model_dir", "other", "--fine_tune_checkpoint", "run/checkpoints/step-2"]
    cured = trained_desk.penstock("train", "run.yaml", *tune, *more)
    went_on = trained_desk.penstock("train", "run.yaml", "--new_data")

    assert done.stderr.splitlines()[-1].endswith(
        "; put that file back, go on with these (train: --new_data), "
        "or start anew (train: another --model_dir; --fine_tune_checkpoint keeps the model)"
    )
    assert done.exit_code == 1
    assert cured.exit_code == 0, cured.stderr
    assert went_on.stdout.splitlines()[0] == "trained   4 steps, 2 epochs, 12 rows", went_on.stderr


def test_a_run_to_continue_that_never_began_is_fine_tuned(trained_desk: Desk):
    every_step = ["--set", "train_config.log_step_count_steps=1"]
    tune = ["--continue_train", "--fine_tune_checkpoint", "run/checkpoints/step-2"]

    fresh = trained_desk.penstock("train", "run.yaml", "--model_dir", "fresh", *every_step)
    tuned = trained_desk.penstock("train", "run.yaml", "--model_dir", "tuned", *every_step, *tune)

    assert (fresh.exit_code, tuned.exit_code) == (0, 0)
    assert first_loss(trained_desk.folder / "tuned") < first_loss(trained_desk.folder / "fresh")


def first_loss(model_dir: Path) -> float:
    """The loss of the first step."""
    records = [json.loads(line) for line in (model_dir / "log.jsonl").read_text().splitlines()]
    return next(record["loss"] for record in records if record["step"] == 1)


def test_without_evaluation_data(desk: Desk):
    desk.write_run(("eval_input_path: clicks.parquet\n", ""))

    done = desk.penstock("train", "run.yaml")

    assert done.exit_code == 0, done.stderr
    assert "eval      nothing was evaluated" in done.stdout
    assert not (desk.folder / "run" / "eval_result.jsonl").exists()


def test_the_final_config_as_protobuf_text_on_request(desk: Desk):
    done = desk.penstock("train", "run.yaml", "--text_config", "--set", "data_config.batch_size=3")

    assert done.exit_code == 0, done.stderr
    written = load_run(desk.folder / "run" / "run.config")
    assert written == load_run(desk.folder / "run" / "run.yaml")
    assert written.data_config.batch_size == 3


def test_check_takes_a_batch_and_writes_nothing(desk: Desk):
    before = desk.content()

    done = desk.penstock("check", "run.yaml")

    assert done.exit_code == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "check        all good; nothing was written"
    assert "first batch  4 rows, loss 0." in done.stdout
    assert desk.content() == before
