"""What a run that continues, is evaluated or predicts accepts of a checkpoint."""

import pytest

from penstock.checkpoint import CheckpointStore
from penstock.run.resume import saved_shuffle_rows
from penstock.training.model_dir import ModelDir

CHECKPOINT = "run/checkpoints/step-2"
OTHER_PRICE = ('default_value: "0"', 'default_value: "7"')
PRICE_DIFFERS = (
    'feature \'price\': default_value differs: "0" in the checkpoint, "7" in this run file; '
    "train anew, or start from it with --fine_tune_checkpoint"
)
COMMANDS = {
    "continue": ("train", "run.yaml", "--continue_train", "--set", "train_config.num_epochs=2"),
    "continue without optimizer": (
        *("train", "run.yaml", "--continue_train", "--ignore_restore_optimizer"),
        *("--set", "train_config.num_epochs=2"),
    ),
    "eval": ("eval", "run.yaml"),
    "predict": (
        *("predict", "run.yaml", "--predict_input_path", "clicks.parquet"),
        *("--predict_output_path", "scores"),
    ),
}


def continued(desk, *words):
    return desk.penstock(*COMMANDS["continue"], *words)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_another_meaning_of_a_feature_is_refused(trained_desk, command):
    trained_desk.write_run(OTHER_PRICE)

    done = trained_desk.penstock(*command)

    assert done.exit_code == 1
    assert done.stderr == f"error: {CHECKPOINT}: {PRICE_DIFFERS}\n"


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS.keys())
def test_the_same_meaning_is_accepted_however_it_is_written(trained_desk, command):
    trained_desk.write_run(("num_buckets: 100, embedding_dim: 4}\n  - raw", PLAIN_OPTIONS))

    assert trained_desk.penstock(*command).exit_code == 0


PLAIN_OPTIONS = (
    'num_buckets: 100, embedding_dim: 4, pooling: sum, init_fn: "nn.init.normal_,std=0.5"}\n  - raw'
)


def test_fine_tuning_learns_another_meaning_and_says_so(trained_desk):
    trained_desk.write_run(OTHER_PRICE)

    done = trained_desk.penstock(
        "train", "run.yaml", "--model_dir", "new", "--fine_tune_checkpoint", CHECKPOINT
    )

    assert done.exit_code == 0
    assert f"fine-tuning from {CHECKPOINT}: feature 'price': default_value differs" in done.stderr


def test_a_checkpoint_that_does_not_say_what_its_features_mean(trained_desk):
    CheckpointStore(trained_desk.folder / "run/checkpoints").save(9, {}, {"progress": {}})

    done = trained_desk.penstock("eval", "run.yaml")

    assert "run/checkpoints/step-9: does not say what its features mean; train anew" in done.stderr


@pytest.mark.parametrize("words", [(), ("--ignore_restore_optimizer",)], ids=["all", "the model alone"])
def test_a_model_that_has_more_than_the_checkpoint_does_not_continue(trained_desk, words):
    trained_desk.write_run(("hidden_units: [4]", "hidden_units: [4, 4]"))

    done = continued(trained_desk, *words)

    assert done.exit_code == 1
    assert f"{CHECKPOINT}: does not fit this model: " in done.stderr


def test_a_run_goes_on_shuffled_as_it_was(trained_desk):
    assert saved_shuffle_rows(ModelDir(trained_desk.folder / "new")) is None
    assert saved_shuffle_rows(ModelDir(trained_desk.folder / "run")) == 0

    trained_desk.penstock("train", "run.yaml", "--model_dir", "new", "--set", "data_config.shuffle=true")

    assert saved_shuffle_rows(ModelDir(trained_desk.folder / "new")) > 1


def test_shuffling_is_not_begun_on_the_way(trained_desk):
    done = continued(trained_desk, "--set", "data_config.shuffle=true")

    assert done.exit_code == 1
    assert done.stderr == (
        f"error: {CHECKPOINT}: was trained without shuffling, which cannot change on the way; "
        "set data_config.shuffle: false\n"
    )


def test_shuffling_is_not_ended_on_the_way(trained_desk):
    shuffled = ("--model_dir", "new", "--set", "data_config.shuffle=true")
    trained_desk.penstock("train", "run.yaml", *shuffled)

    done = continued(trained_desk, *shuffled[:2])

    assert done.stderr == (
        "error: new/checkpoints/step-2: was trained with shuffling, which cannot change on the way; "
        "set data_config.shuffle: true\n"
    )


@pytest.mark.parametrize(("keep", "asked"), [(0, False), (1, True)])
def test_evaluations_are_read_at_a_save_only_where_checkpoints_go(desk, monkeypatch, keep, asked):
    calls = []
    monkeypatch.setattr("penstock.run.train.best_step", lambda *_: calls.append(1))

    done = desk.penstock("train", "run.yaml", "--set", f"train_config.keep_checkpoint_max={keep}")

    assert done.exit_code == 0
    assert (len(calls) > 1) == asked  # once for the result


@pytest.mark.parametrize(
    "dense", ["{sgd_optimizer: {lr: 0.1}}", "{adam_optimizer: {lr: 0.1}, ema: {decay: 0.5}}"]
)
def test_other_optimizers_do_not_continue_and_the_cure_that_is_told_works(trained_desk, dense):
    trained_desk.write_run(("{adam_optimizer: {lr: 0.1}}", dense), ("num_epochs: 1", "num_epochs: 2"))

    refused = continued(trained_desk)
    anew = continued(trained_desk, "--ignore_restore_optimizer")

    assert refused.exit_code == 1
    assert f"{CHECKPOINT}: was trained with other optimizers or running means: " in refused.stderr
    assert "; choose those again, or start them anew with --ignore_restore_optimizer" in refused.stderr
    assert anew.exit_code == 0, anew.stderr
