"""What a run that continues, is fine-tuned, evaluated or predicts accepts of a checkpoint."""

import pytest

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import CheckpointError, ConfigError
from penstock.config.write import changed_settings
from penstock.run.restore import read_param_map
from tests.run.training_runs import trained

CHECKPOINT = "run/checkpoints/step-2"
OTHER_PRICE = ('default_value: "0"', 'default_value: "7"')
PRICE_DIFFERS = (
    'feature \'price\': default_value differs: "0" in the checkpoint, "7" in this run file; '
    "train again, or start from it with --fine_tune_checkpoint"
)
COMMANDS = {
    "continue": ("train", "run.yaml", "--continue_train", "--set", "train_config.num_epochs=2"),
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

    assert "run/checkpoints/step-9: does not say what its features mean; train again" in done.stderr


USER_FEATURE = "num_buckets: 100, embedding_dim: 4}\n  - id_feature: {feature_name: item"
ITEM_FEATURE = "num_buckets: 100, embedding_dim: 4}\n  - raw"
OTHER_MODELS = {
    "with model_config.deepfm.deep.hidden_units [4], the run file has [4, 4]": (
        ("hidden_units: [4]", "hidden_units: [4, 4]"),
    ),
    "with feature_configs[user].id_feature.num_buckets 100, the run file has 50": (
        (USER_FEATURE, USER_FEATURE.replace("100", "50")),
    ),
    "with feature_configs[user].id_feature.embedding_dim 4, the run file has 8 (1 more setting differs)": (
        (USER_FEATURE, USER_FEATURE.replace("4", "8")),
        (ITEM_FEATURE, ITEM_FEATURE.replace("4", "8")),
    ),
    "without model_config.deepfm.deep.use_bn, the run file has true": (
        ("hidden_units: [4]", "hidden_units: [4], use_bn: true"),
    ),
    "as deepfm, the run file has wide_and_deep": (("  deepfm: {", "  wide_and_deep: {"),),
}


@pytest.mark.parametrize(("difference", "changes"), OTHER_MODELS.items())
def test_of_another_model_the_first_setting_that_differs_is_named(trained_desk, difference, changes):
    trained_desk.write_run(*changes)

    for command in (*COMMANDS.values(), [*COMMANDS["continue"], "--ignore_restore_optimizer"]):
        done = trained_desk.penstock(*command)
        assert done.exit_code == 1
        assert done.stderr == (
            f"error: {CHECKPOINT}: was trained {difference}; set it back (as in run/run.yaml), "
            "or train anew with another --model_dir\n"
        )


def test_of_a_model_whose_run_file_is_gone_the_first_tensor_is_named(trained_desk):
    (trained_desk.folder / "run/run.yaml").unlink()
    trained_desk.write_run(("hidden_units: [4]", "hidden_units: [4, 4]"))

    done = continued(trained_desk)

    assert done.stderr.startswith(
        f"error: {CHECKPOINT}: does not fit this model: missing in the checkpoint: "
    )
    assert "layers.1.linear.bias and 1 more" in done.stderr


def test_what_changes_no_tensor_stops_no_run(trained_desk):
    trained_desk.write_run(("hidden_units: [4]", "hidden_units: [4], dropout_ratio: [0.5]"))

    assert continued(trained_desk).exit_code == 0


def test_shuffling_is_neither_begun_nor_ended_on_the_way(trained_desk):
    shuffled = ("--model_dir", "new", "--set", "data_config.shuffle=true")
    trained_desk.penstock("train", "run.yaml", *shuffled)

    for words, folder, was, setting in (
        (shuffled[2:], "run", "without", "false"),
        (shuffled[:2], "new", "with", "true"),
    ):
        assert continued(trained_desk, *words).stderr == (
            f"error: {folder}/checkpoints/step-2: was trained {was} shuffling, which cannot change on the way; "
            f"set data_config.shuffle: {setting}\n"
        )


def test_a_damaged_checkpoint_says_nothing_of_the_shuffle_buffer(desk):
    """The run goes on from the one before, whose buffer had another number of rows."""
    sets = {"data_config.shuffle": True, "train_config.save_checkpoints_steps": 3}
    small, large = {"data_config.shuffle_buffer": "1MiB"}, {"data_config.shuffle_buffer": "64MiB"}
    trained(desk, sets | small)
    newest = trained(desk, sets | large, new_data=True).checkpoint
    tensors = newest / "rank-00000.safetensors"
    content = bytearray(tensors.read_bytes())
    content[-1] ^= 1
    tensors.write_bytes(content)

    result = trained(desk, sets | small | {"train_config.num_epochs": 2}, resume=True)

    assert newest.name == result.checkpoint.name == "step-6"
    assert result.trained_rows == 6


def test_other_optimizers_do_not_continue_and_the_cure_that_is_named_works(trained_desk):
    other = "{sgd_optimizer: {lr: 0.1}, ema: {decay: 0.5}}"
    trained_desk.write_run(("{adam_optimizer: {lr: 0.1}}", other), ("num_epochs: 1", "num_epochs: 2"))

    refused = continued(trained_desk)
    anew = continued(trained_desk, "--ignore_restore_optimizer")

    assert refused.exit_code == 1
    assert f"{CHECKPOINT}: was trained with other optimizers or running means: " in refused.stderr
    assert "; choose those again, or start them over with --ignore_restore_optimizer" in refused.stderr
    assert anew.exit_code == 0, anew.stderr


USER = "model.model.embedding_group.tables.embedding_bags.user_emb.weight"
CUSTOMER = USER.replace("user_emb", "customer_emb")
CURRENT, OLD = [CUSTOMER, "model.b"], [USER, "model.b"]

RENAMED = (
    ("id_feature: {feature_name: user, ", "id_feature: {feature_name: customer, "),
    ("[user, item]}", "[customer, item]}"),
    ("[user, item, price]", "[customer, item, price]"),
)


def write_map(desk, *lines):
    desk.write("names.txt", "\n".join(lines) + "\n")
    return desk.folder / "names.txt"


def tuned(desk, **sets):
    return trained(
        desk,
        {
            "model_dir": "tuned",
            "train_config.fine_tune_checkpoint": "run/checkpoints/step-2",
            "train_config.sparse_optimizer": {"sgd_optimizer": {"lr": 0.0}},
            **sets,
        },
    )


def test_a_table_starts_from_the_one_that_is_named_and_the_rest_is_listed(trained_desk, caplog):
    trained_desk.write_run(*RENAMED)
    item, wide = USER.replace("user_emb", "item_emb"), CUSTOMER.replace("_emb.", "_emb_wide.")
    write_map(trained_desk, "# current old", "", f"{CUSTOMER} {USER}", f"{item} {USER}")

    result = tuned(trained_desk, **{"train_config.fine_tune_ckpt_param_map": "names.txt"})

    old = table(trained_desk, "run/checkpoints/step-2", USER)
    assert table(trained_desk, result.checkpoint, CUSTOMER).equal(old)
    assert table(trained_desk, result.checkpoint, item).equal(old)  # one old table may start two
    assert f"missing in the checkpoint: {wide}" in caplog.text
    assert USER.replace("_emb.", "_emb_wide.") in caplog.text.partition("only in the checkpoint: ")[2]


def table(desk, checkpoint, name):
    """A table of a checkpoint, read by any safetensors reader."""
    from safetensors.torch import load_file

    tensors = load_file(desk.folder / checkpoint / "rank-00000.safetensors")
    return next(tensor for key, tensor in tensors.items() if key.partition("@")[0] == name)


def test_another_shape_is_an_error_that_names_both(trained_desk):
    write_map(trained_desk, f"{USER} model.output.bias")

    with pytest.raises(CheckpointError) as caught:
        tuned(trained_desk, **{"train_config.fine_tune_ckpt_param_map": "names.txt"})

    assert str(caught.value) == (
        f"run/checkpoints/step-2: '{USER}' is [100, 4] "
        "but 'model.model.output.bias', which it is to start from, is [1]"
    )


def test_the_beginning_that_all_names_have_may_be_left_out(tmp_path):
    (tmp_path / "names.txt").write_text(f"{CUSTOMER.removeprefix('model.')} {USER}\nb b\n")

    assert read_param_map(tmp_path / "names.txt", CURRENT, OLD) == {CUSTOMER: USER, "model.b": "model.b"}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("model.b", "line 1: has 1 words; write 'current old'"),
        ("\nmodel.c model.b", "line 2: the model has no parameter 'model.c'; "),
        ("model.b model.c", "line 1: the checkpoint has no parameter 'model.c'; "),
        ("model.b model.b\nb model.b", "line 2: 'b' is there already"),
    ],
)
def test_a_wrong_line_is_named(tmp_path, lines, problem):
    (tmp_path / "names.txt").write_text(lines)

    with pytest.raises(ConfigError) as caught:
        read_param_map(tmp_path / "names.txt", CURRENT, OLD)

    assert str(caught.value).startswith("train_config.fine_tune_ckpt_param_map: ")
    assert problem in str(caught.value)


BEFORE = {
    "train_input_path": "monday.parquet",
    "model_dir": "run",
    "train_config": {"num_epochs": 1, "dense_optimizer": {"adam_optimizer": {"lr": 0.001}}},
}
TUESDAY = {**BEFORE, "train_input_path": "tuesday.parquet", "eval_input_path": "tuesday.parquet"}


@pytest.mark.parametrize(
    ("before", "now", "new_data", "line"),
    [
        (BEFORE, TUESDAY, True, None),  # other files are what new data are
        (
            BEFORE,
            TUESDAY,
            False,
            (
                "2 changed settings: train_input_path monday.parquet -> tuesday.parquet, "
                "eval_input_path not set -> tuesday.parquet"
            ),
        ),
    ],
)
def test_settings_that_changed(before, now, new_data, line):
    assert changed_settings(before, now, new_data) == line
