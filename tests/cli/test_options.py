"""Options become edits of the run file: paths first, then edits in the order given."""

import pytest

import penstock
from tests.cli.desk import Desk


def trained(desk: Desk, *words: str) -> "penstock.RunConfig":
    """The final config of a training with these words."""
    done = desk.penstock("train", "run.yaml", *words)
    assert done.exit_code == 0, done.stderr
    return penstock.load_run("run/run.yaml")


@pytest.mark.parametrize("option", ["--train-input-path", "--train_input-path"])
def test_hyphen_and_underscore_are_the_same(desk: Desk, option: str):
    desk.write_clicks("other.parquet")

    run = trained(desk, option, "other.parquet")

    assert run.train_input_path == "other.parquet"


def test_underscores_in_values_stay(desk: Desk):
    desk.write_clicks("other_clicks-1.parquet")

    run = trained(desk, "--train_input_path", "other_clicks-1.parquet", "--set", "train_config.num_epochs=2")

    assert run.train_input_path == "other_clicks-1.parquet"
    assert run.train_config.num_epochs == 2


def test_paths_come_first_then_edits_then_the_edits_of_json(desk: Desk):
    run = trained(
        desk,
        "--edit_config_json", '{"data_config.batch_size": 2, "train_config.num_epochs": 3}',
        "--set", "data_config.batch_size=5",
        "--set", "memory.limit=6GiB",
        "--set", "train_config.num_epochs=7",
        "--memory", "5GiB",
    )  # fmt: skip

    assert run.memory.limit == 6 * 2**30
    assert run.data_config.batch_size == 2
    assert run.train_config.num_epochs == 3


def test_fine_tuning_is_an_option_too(trained_desk: Desk):
    checkpoint = "run/checkpoints/step-2"

    done = trained_desk.penstock(
        "train", "run.yaml", "--model_dir", "other", "--fine_tune_checkpoint", checkpoint
    )

    assert done.exit_code == 0, done.stderr
    assert penstock.load_run("other/run.yaml").train_config.fine_tune_checkpoint == checkpoint
