"""Starting from a checkpoint whose parameters were called otherwise."""

import pytest

from penstock.config.errors import CheckpointError, ConfigError
from penstock.run.resume import read_param_map
from tests.run.training_runs import trained

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


def test_a_table_starts_from_the_one_that_it_was_called(trained_desk, caplog):
    trained_desk.write_run(*RENAMED)
    wide = CUSTOMER.replace("_emb.", "_emb_wide."), USER.replace("_emb.", "_emb_wide.")
    write_map(trained_desk, "# current old", "", f"{CUSTOMER} {USER}", " ".join(wide))

    result = tuned(trained_desk, **{"train_config.fine_tune_ckpt_param_map": "names.txt"})

    old, new = (
        table(trained_desk, "run/checkpoints/step-2", USER),
        table(trained_desk, result.checkpoint, CUSTOMER),
    )
    assert new.equal(old)
    assert "missing in the checkpoint" not in caplog.text


def test_what_is_not_named_is_listed_as_missing_and_as_left_over(trained_desk, caplog):
    trained_desk.write_run(*RENAMED)
    write_map(trained_desk, f"{CUSTOMER} {USER}")

    tuned(trained_desk, **{"train_config.fine_tune_ckpt_param_map": "names.txt"})

    assert "missing in the checkpoint: " + CUSTOMER.replace("_emb.", "_emb_wide.") in caplog.text
    assert "only in the checkpoint: " + USER.replace("_emb.", "_emb_wide.") in caplog.text


def test_one_old_table_may_start_two(trained_desk):
    item = USER.replace("user_emb", "item_emb")
    write_map(trained_desk, f"{item} {USER}")

    result = tuned(trained_desk, **{"train_config.fine_tune_ckpt_param_map": "names.txt"})

    old = table(trained_desk, "run/checkpoints/step-2", USER)
    assert table(trained_desk, result.checkpoint, USER).equal(old)
    assert table(trained_desk, result.checkpoint, item).equal(old)


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


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ConfigError, match=r"fine_tune_ckpt_param_map: '.*no.txt' cannot be read"):
        read_param_map(tmp_path / "no.txt", CURRENT, OLD)
