"""What is told of settings that changed between a run and its continuation."""

from penstock.config.difference import changed_settings

BEFORE = {
    "train_input_path": "monday.parquet",
    "model_dir": "run",
    "train_config": {"num_epochs": 1, "dense_optimizer": {"adam_optimizer": {"lr": 0.001}}},
}


def test_the_same_settings_are_not_spoken_of() -> None:
    assert changed_settings(BEFORE, {**BEFORE, "model_dir": "/there/run"}) is None


def test_each_changed_key_with_both_values() -> None:
    now = {
        **BEFORE,
        "train_config": {"num_steps": 9, "dense_optimizer": {"adam_optimizer": {"lr": 0.03}}},
    }

    assert changed_settings(BEFORE, now) == (
        "3 changed settings: train_config.num_epochs 1 -> not set, "
        "train_config.dense_optimizer.adam_optimizer.lr 0.001 -> 0.03, train_config.num_steps not set -> 9"
    )


def test_one_is_one() -> None:
    assert changed_settings({"a": 1}, {"a": 2}) == "1 changed setting: a 1 -> 2"


def test_of_many_five_are_named() -> None:
    before, now = ({f"key{index}": value for index in range(7)} for value in (1, 2))

    told = changed_settings(before, now)

    assert told is not None
    assert told.startswith("7 changed settings: key0 1 -> 2, ")
    assert told.endswith(", key4 1 -> 2 and 2 more")


def test_other_files_are_what_new_data_are() -> None:
    now = {**BEFORE, "train_input_path": "tuesday.parquet", "eval_input_path": "tuesday.parquet"}

    assert changed_settings(BEFORE, now, new_data=True) is None
    assert changed_settings(BEFORE, now) == (
        "2 changed settings: train_input_path monday.parquet -> tuesday.parquet, "
        "eval_input_path not set -> tuesday.parquet"
    )


def test_what_a_run_started_from_decides_nothing_when_it_goes_on() -> None:
    tuned = {**BEFORE, "train_config": {**BEFORE["train_config"], "fine_tune_checkpoint": "runs/early"}}

    assert changed_settings(tuned, BEFORE) is None


def test_a_folder_without_a_run_file_tells_nothing() -> None:
    assert changed_settings({}, BEFORE) is None
