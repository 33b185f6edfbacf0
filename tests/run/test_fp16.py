"""mixed_precision: FP16, from the run file to the checkpoint."""

import pytest

from penstock.config.errors import DataError
from tests.run.training_runs import log_of, parameters, steps_of, trained

FP16 = {"train_config.mixed_precision": "FP16"}
TOO_LARGE = {**FP16, "train_config.grad_scaler": {"init_scale": 2.0**18, "growth_interval": 3}}
"""Some of the first batches overflow, and later the scale grows into an overflow again."""
EIGHT_EPOCHS = {"train_config.save_checkpoints_steps": 0, "train_config.num_epochs": 8}


def test_batches_that_overflow_are_counted_as_no_steps_in_one_piece_and_in_two(desk):
    sets = TOO_LARGE | EIGHT_EPOCHS | {"eval_input_path": ""}
    result = trained(desk, sets | {"model_dir": "whole"})
    trained(desk, sets | {"train_config.num_epochs": 2})
    pieces = trained(desk, sets, resume=True)

    log = log_of(result.model_dir)
    overflows = [record for record in log if record.get("event") == "overflow"]
    assert 0 < result.overflowed_batches == len(overflows) == overflows[-1]["overflowed_batches"] < 24
    assert result.steps + result.overflowed_batches == 8 * 3
    assert result.rows == 2 * result.steps
    assert log[1] == {
        "event": "overflow",
        "step": 1,
        "overflowed_batches": 1,
        "num_rows": 2,
        "loss_scale": 2.0**17,
    }
    assert log[-1]["overflowed_batches"] == result.overflowed_batches == pieces.overflowed_batches
    assert result.skipped_batches == 0
    assert not (result.model_dir / "nonfinite").exists()
    assert parameters(result.checkpoint) == parameters(pieces.checkpoint)
    assert steps_of(result.model_dir) == steps_of(pieces.model_dir)


def test_numbers_that_fp16_does_not_have_are_refused_with_a_cure_or_passed_over(desk):
    desk.write_clicks(price=[0.5, 1.5, 70_000.0, 2.5, 3.5, 4.5])

    with pytest.raises(DataError) as caught:
        trained(desk, FP16)
    result = trained(desk, FP16 | {"model_dir": "other", "train_config.on_nonfinite": "skip"})

    assert str(caught.value) == (
        "step 2: the loss is nan on 2 rows (rows 2 to 3 of clicks.parquet); predictions of 1 of them are not finite, "
        "the first row 2 of clicks.parquet; the rows are in run/nonfinite/step-2.jsonl: numbers of FP16 end at 65,504: "
        "use a normalizer for larger ones, or mixed_precision: BF16; or look at them, or lower the learning rate, "
        "or pass over such batches with train_config.on_nonfinite: skip"
    )
    assert (result.steps, result.skipped_batches, result.overflowed_batches) == (2, 1, 0)
    assert log_of(result.model_dir)[-2]["loss_scale"] == 65536.0  # left as it is


def cusp():
    """A loss of 0 whose slope is infinite."""
    return lambda logits, labels: (logits - logits.detach()).sqrt()


def test_a_gradient_that_is_infinite_at_any_scale_is_an_error(desk):
    sets = {
        "train_config.grad_scaler": {"init_scale": 2.0**-15},
        "model_config.losses": [{"custom_loss": {"import_path": f"{__name__}:cusp"}}],
    }
    with pytest.raises(DataError) as caught:
        trained(desk, FP16 | sets)

    assert str(caught.value) == (
        "step 1: a gradient on 2 rows (rows 2 to 3 of clicks.parquet) is not finite in FP16 at any scale "
        "(now 7.62939e-06), though the loss is; use train_config.mixed_precision: BF16, or none"
    )


def test_several_tasks_clipping_running_means_and_joined_batches_learn_nearly_the_same(desk):
    desk.write_clicks(buy=[0, 0, 0, 1, 0, 1])
    towers = [
        {
            "tower_name": name,
            "label_name": name,
            "losses": [{"binary_cross_entropy": {}}],
            "pareto_min_loss_weight": 0.1,
        }
        for name in ("click", "buy")
    ]
    group = {"group_name": "all", "group_type": "DEEP", "feature_names": ["user", "item", "price"]}
    expert = {"expert_mlp": {"hidden_units": [4]}, "num_expert": 2}
    sets = EIGHT_EPOCHS | {
        "data_config.label_fields": ["click", "buy"],
        "model_config.feature_groups": [group],
        "model_config.deepfm": None,
        "model_config.mmoe": {**expert, "task_towers": towers},
        "model_config.losses": [],
        "model_config.metrics": [],
        "model_config.use_pareto_loss_weight": True,
        "train_config.grad_clipping": {"clipping_type": "norm", "max_gradient": 0.1},
        "train_config.dense_optimizer": {"adam_optimizer": {"lr": 0.1}, "ema": {"decay": 0.5}},
        "train_config.gradient_accumulation_steps": 2,
    }
    scaled = FP16 | {"train_config.grad_scaler": {"init_scale": 1024.0}}

    exact = trained(desk, sets | {"model_dir": "exact"})
    rounded = trained(desk, sets | scaled | {"model_dir": "rounded"})

    assert exact.steps == rounded.steps == 16
    assert rounded.overflowed_batches == 0
    assert rounded.losses == pytest.approx(exact.losses, abs=0.02)
