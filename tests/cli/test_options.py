"""Options become edits of the run file: those that are keys first, then edits in the order given."""

import penstock
from tests.cli.desk import Desk


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
