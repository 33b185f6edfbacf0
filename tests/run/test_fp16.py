"""mixed_precision: FP16, from the run file to the checkpoint."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from penstock.config.errors import DataError
from penstock.run.run_file import load_run
from penstock.run.train import train
from tests.run.training_runs import log_of, parameters, steps_of, trained

FP16 = {"train_config.mixed_precision": "FP16"}
TOO_LARGE = {**FP16, "train_config.grad_scaler": {"init_scale": 2.0**18, "growth_interval": 3}}
"""Some of the first batches overflow, and later the scale grows into an overflow again."""
SAVED_AT_THE_END = {"train_config.save_checkpoints_steps": 0}
NOT_EVALUATED = {"eval_input_path": ""}
TWO_EPOCHS, EIGHT_EPOCHS = (SAVED_AT_THE_END | {"train_config.num_epochs": epochs} for epochs in (2, 8))


def test_trains_nearly_the_same_and_logs_its_scale(desk):
    exact = trained(desk, {"model_dir": "exact"})
    rounded = trained(desk, {"model_dir": "rounded", **FP16})

    losses = [[record["loss"] for record in steps_of(run.model_dir)] for run in (exact, rounded)]
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], abs=0.01)
    assert [record["loss_scale"] for record in log_of(rounded.model_dir) if "loss" in record] == [65536.0] * 3
    assert "loss_scale" not in json.dumps(log_of(exact.model_dir))


def test_batches_that_overflow_are_no_steps_and_are_counted(desk):
    result = trained(desk, TOO_LARGE | EIGHT_EPOCHS)

    log = log_of(result.model_dir)
    told = [record for record in log if record.get("event") == "overflow"]
    assert 0 < result.overflowed_batches == len(told) == told[-1]["overflowed_batches"] < 24
    assert result.steps + result.overflowed_batches == 8 * 3
    assert result.rows == 2 * result.steps
    assert log[0]["event"] == "start"
    assert log[1] == {
        "event": "overflow",
        "step": 1,
        "overflowed_batches": 1,
        "num_rows": 2,
        "loss_scale": 2.0**17,
    }
    assert log[-1]["overflowed_batches"] == result.overflowed_batches
    assert result.skipped_batches == 0
    assert not (result.model_dir / "nonfinite").exists()


@pytest.mark.parametrize("sparse", ["adagrad_optimizer", "adam_optimizer"])
def test_a_run_in_two_pieces_equals_a_run_in_one(desk, sparse):
    sets = TOO_LARGE | NOT_EVALUATED | {"train_config.sparse_optimizer": {sparse: {"lr": 0.1}}}
    whole = trained(desk, sets | EIGHT_EPOCHS | {"model_dir": "whole"})
    trained(desk, sets | TWO_EPOCHS | {"model_dir": "pieces"})
    pieces = trained(desk, sets | EIGHT_EPOCHS | {"model_dir": "pieces"}, resume=True)

    assert whole.overflowed_batches == pieces.overflowed_batches > 0
    assert parameters(whole.checkpoint) == parameters(pieces.checkpoint)
    assert steps_of(whole.model_dir) == steps_of(pieces.model_dir)


class StopAt:
    """Ends a run after this step, in the middle of an epoch."""

    def __init__(self, step):
        self.step = step

    def on_log(self, step, metrics, control):
        if step == self.step:
            control.stop()


def test_clipping_running_means_and_joined_batches_go_together(desk):
    sets = {
        "train_config.grad_clipping": {"clipping_type": "norm", "max_gradient": 0.1},
        "train_config.dense_optimizer": {"adam_optimizer": {"lr": 0.1}, "ema": {"decay": 0.5}},
        "train_config.gradient_accumulation_steps": 2,
        "train_config.num_epochs": 3,
        **SAVED_AT_THE_END,
    }
    exact = trained(desk, sets | {"model_dir": "exact"})
    rounded = trained(desk, sets | FP16 | {"model_dir": "rounded"})

    assert exact.steps == rounded.steps == 6
    assert rounded.losses == pytest.approx(exact.losses, abs=0.01)


@pytest.mark.parametrize("use_pareto", [False, True])
def test_several_tasks_learn_nearly_the_same(desk, use_pareto):
    desk.write_clicks(buy=[0, 0, 0, 1, 0, 1])
    towers = [
        {"tower_name": name, "label_name": name, "losses": [{"binary_cross_entropy": {}}]}
        for name in ("click", "buy")
    ]
    least = {"pareto_min_loss_weight": 0.1} if use_pareto else {}
    sets = {
        "data_config.label_fields": ["click", "buy"],
        "model_config.feature_groups": [
            {"group_name": "all", "group_type": "DEEP", "feature_names": ["user", "item", "price"]}
        ],
        "model_config.deepfm": None,
        "model_config.mmoe": {
            "expert_mlp": {"hidden_units": [4]},
            "num_expert": 2,
            "task_towers": [tower | least for tower in towers],
        },
        "model_config.losses": [],
        "model_config.metrics": [],
        "model_config.use_pareto_loss_weight": use_pareto,
    } | EIGHT_EPOCHS
    exact = trained(desk, sets | {"model_dir": "exact"})
    scaled = FP16 | {"train_config.grad_scaler": {"init_scale": 1024.0}}
    rounded = trained(desk, sets | scaled | {"model_dir": "rounded"})

    assert rounded.overflowed_batches == 0
    assert rounded.losses == pytest.approx(exact.losses, abs=0.02)


def test_numbers_that_fp16_does_not_have_are_told_with_a_cure(desk):
    desk.write_clicks(price=[0.5, 1.5, 70_000.0, 2.5, 3.5, 4.5])

    with pytest.raises(DataError) as caught:
        trained(desk, FP16)

    assert str(caught.value) == (
        "step 2: the loss is nan on 2 rows (rows 2 to 3 of clicks.parquet); predictions of 1 of them are not finite, "
        "the first row 2 of clicks.parquet; the rows are in run/nonfinite/step-2.jsonl: numbers of FP16 end at 65,504: "
        "use a normalizer for larger ones, or mixed_precision: BF16; or look at them, or lower the learning rate, "
        "or pass over such batches with train_config.on_nonfinite: skip"
    )


def test_passing_over_such_rows_leaves_the_scale_as_it_is(desk):
    desk.write_clicks(price=[0.5, 1.5, 70_000.0, 2.5, 3.5, 4.5])

    result = trained(desk, FP16 | {"train_config.on_nonfinite": "skip"})

    assert (result.steps, result.skipped_batches, result.overflowed_batches) == (2, 1, 0)
    assert log_of(result.model_dir)[-2]["loss_scale"] == 65536.0


def test_a_run_of_overflows_alone_is_an_error(desk):
    with pytest.raises(DataError) as caught:
        trained(desk, FP16 | {"train_config.grad_scaler": {"init_scale": 2.0**60}})

    assert str(caught.value) == (
        "the gradients of all 3 batches were too large for FP16; "
        "lower train_config.grad_scaler.init_scale, or use mixed_precision: BF16"
    )


def cusp():
    """A loss of 0 whose slope is infinite."""
    return lambda logits, labels: (logits - logits.detach()).sqrt()


def test_a_gradient_that_is_infinite_at_any_scale_is_an_error(desk):
    own_loss = {"model_config.losses": [{"custom_loss": {"place": f"{__name__}:cusp"}}]}
    with pytest.raises(DataError) as caught:
        trained(desk, FP16 | own_loss | {"train_config.grad_scaler": {"init_scale": 2.0**-15}})

    assert str(caught.value) == (
        "step 1: a gradient on 2 rows (rows 2 to 3 of clicks.parquet) is not finite in FP16 at any scale "
        "(now 7.62939e-06), though the loss is; use train_config.mixed_precision: BF16, or none"
    )


def test_a_model_in_fp16_learns_what_one_in_float32_does(desk):
    generator = np.random.default_rng(0)
    users, items = (generator.integers(0, 100, 4000) for _ in range(2))
    liked = generator.normal(size=(2, 100))
    clicks = generator.random(4000) < 1 / (1 + np.exp(-2 * (liked[0][users] + liked[1][items])))
    table = {"user_id": users, "item_id": items, "price": np.ones(4000), "click": clicks.astype(np.int64)}
    pq.write_table(pa.table(table), desk.folder / "clicks.parquet")
    sets = {"data_config.batch_size": 200, "train_config.num_epochs": 5}

    auc = {
        precision: train(
            load_run(
                desk.folder / "run.yaml",
                sets | {"model_dir": precision or "exact", "train_config.mixed_precision": precision},
            )
        ).metrics["auc"]
        for precision in ("", "FP16")
    }

    assert auc[""] > 0.85
    assert auc["FP16"] == pytest.approx(auc[""], abs=0.005)
