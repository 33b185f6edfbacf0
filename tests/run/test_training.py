"""What the training loop does beyond steps: accumulation, clipping, precision, bad losses, new data, metrics, log."""

import json
import os
import re
import signal

import pytest
import torch

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import DataError
from penstock.run.run_config import load_run
from penstock.run.session import computing
from tests.run.training_runs import STEPS_OF_2, log_of, parameters, steps_of, tensors, trained

HEAVY_ROWS = {"weight": [1.0, 1.0, 3.4e38, 3.4e38, 1.0, 1.0]}
"""The second batch of two rows: its weights are finite, but their sum is not, and the loss is not a number."""

WEIGHTED = {"data_config.sample_weight_fields": ["weight"]}
SAVED_AT_THE_END = {"train_config.save_checkpoints_steps": 0}


@pytest.mark.parametrize("optimizer", ["rowwise_adagrad_optimizer", "adam_optimizer"])
def test_accumulated_batches_are_one_larger_batch_to_the_last_bit(desk, optimizer):
    sets = {"train_config.sparse_optimizer": {optimizer: {"lr": 0.1}}, "train_config.num_epochs": 3}
    sets |= SAVED_AT_THE_END | {"eval_config.num_steps": 1}

    accumulated = trained(desk, sets | {"train_config.gradient_accumulation_steps": 2})
    expected = trained(desk, sets | {"data_config.batch_size": 4, "model_dir": "larger"})

    assert accumulated.steps == expected.steps == 6
    assert tensors(accumulated.checkpoint) == tensors(expected.checkpoint)
    assert steps_of(accumulated.model_dir) == steps_of(expected.model_dir)
    evaluated = json.loads((desk.folder / "run/eval_result.jsonl").read_text().splitlines()[0])
    assert evaluated["rows"] == 2  # evaluation keeps its batches


def test_gradients_are_clipped_before_they_are_used(desk):
    """With frozen tables and hardly any gradient, the loss stays that of a run whose rate is 0."""
    sets = {"train_config.sparse_optimizer": {"sgd_optimizer": {"lr": 0.0}}, "eval_input_path": ""}
    clipping = {"train_config.grad_clipping": {"clipping_type": "norm", "max_gradient": 1e-9}}

    def losses(name, rate, **more):
        dense = {"train_config.dense_optimizer": {"sgd_optimizer": {"lr": rate}}, "model_dir": name}
        return [record["loss"] for record in steps_of(trained(desk, sets | dense | more).model_dir)]

    still = losses("still", 0.0)
    assert losses("clipped", 1.0, **clipping) == pytest.approx(still, abs=1e-7)
    assert losses("free", 1.0) != pytest.approx(still, abs=1e-3)


def test_tf32_is_as_the_run_file_says_and_afterwards_as_before(desk):
    def allowed():
        return torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32

    sets = {"train_config.cudnn_allow_tf32": False, "train_config.cuda_matmul_allow_tf32": True}
    before = allowed()
    with computing(load_run(desk.folder / "run.yaml", sets)):
        assert allowed() == (False, True)
    assert allowed() == before == (True, False)


@pytest.mark.parametrize(("precision", "scale"), [("BF16", None), ("FP16", 65536.0)])
def test_mixed_precision_trains_nearly_the_same_and_logs_its_scale(trained_desk, precision, scale):
    exact = trained(trained_desk, {"model_dir": "exact"})
    rounded = trained(trained_desk, {"model_dir": "rounded", "train_config.mixed_precision": precision})

    losses = [[record["loss"] for record in steps_of(run.model_dir)] for run in (exact, rounded)]
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], abs=0.02)
    lines = [record for record in log_of(rounded.model_dir) if "loss" in record]
    assert [record.get("loss_scale") for record in lines] == [scale] * 3


def test_rows_whose_loss_is_not_finite_stop_the_run_and_are_written_aside(desk):
    desk.write_clicks(**HEAVY_ROWS)

    with pytest.raises(DataError) as caught:
        trained(desk, WEIGHTED)

    assert str(caught.value) == (
        "step 2: the loss is nan on 2 rows (rows 2 to 3 of clicks.parquet); "
        "the rows are in run/nonfinite/step-2.jsonl: look at them, or lower the learning rate, "
        "or pass over such batches with train_config.on_nonfinite: skip"
    )
    lines = (desk.folder / "run/nonfinite/step-2.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["file"], row["row"], row["labels"]) for row in rows] == [
        ("clicks.parquet", 2, {"click": 0}),
        ("clicks.parquet", 3, {"click": 1}),
    ]
    assert rows[0]["features"] == {"price": 0.0, "user": [3], "item": [7]}
    assert rows[0]["weights"]["weight"] == pytest.approx(3.4e38)


def test_rows_whose_loss_is_not_finite_can_be_skipped_and_change_nothing(desk):
    desk.write_clicks(**HEAVY_ROWS)
    skip = WEIGHTED | {"train_config.on_nonfinite": "skip", "model_config.deepfm.deep.use_bn": True}
    skip |= SAVED_AT_THE_END | {"eval_input_path": ""}

    result = trained(desk, skip)
    desk.write_clicks(
        "without.parquet",
        user_id=[1, 2, 5, 6],
        item_id=[9, 8, 5, 4],
        price=[0.5, 1.5, 3.5, 4.5],
        click=[0, 1, 0, 1],
        weight=[1.0] * 4,
    )
    without = trained(desk, skip | {"model_dir": "without", "train_input_path": "without.parquet"})

    assert (result.steps, result.rows, result.skipped_batches) == (2, 4, 1)
    assert tensors(result.checkpoint) == tensors(without.checkpoint)
    assert [record for record in log_of(result.model_dir) if record.get("event") == "skipped"] == [
        {"event": "skipped", "step": 2, "skipped_batches": 1, "num_rows": 2}
    ]
    again = trained(desk, skip | {"train_config.num_epochs": 2}, resume=True)
    assert again.skipped_batches >= 1  # counted on


def test_train_metrics_are_logged_and_go_on_exactly(desk):
    metrics = {"model_config.train_metrics": [{"auc": {}, "decay_rate": 0.5, "decay_step": 2}]}
    twice = metrics | {"train_config.num_epochs": 2}

    trained(desk, metrics)
    resumed = trained(desk, twice, resume=True)
    whole = trained(desk, twice | {"model_dir": "whole"})

    assert all("auc" in record["train_metrics"] for record in steps_of(whole.model_dir))
    assert steps_of(resumed.model_dir) == steps_of(whole.model_dir)
    assert parameters(resumed.checkpoint) == parameters(whole.checkpoint)
    start = log_of(whole.model_dir)[0]
    assert start["event"] == "start"
    assert start["seconds_to_first_step"] > 0


def test_the_log_explains_a_train_metric_and_warns_of_its_window(desk, caplog):
    desk.write_clicks(click=[0, 0, 0, 1, 1, 0])

    result = trained(desk, {"model_config.train_metrics": [{"auc": {}, "decay_step": 3}]})

    assert "train_config: log_step_count_steps 1 is not a multiple of decay_step 3" in caplog.text
    steps = [record for record in log_of(result.model_dir) if "loss" in record]
    assert [record["train_metrics"]["auc"] is None for record in steps] == [True, False, False]
    assert [record.get("train_remarks") for record in steps] == [
        {"auc": "no positive rows"},
        {"auc": "of the first window, which is still open"},
        None,
    ]


def test_new_data_are_begun_with_everything_that_was_learned_and_can_be_gone_on_in(desk):
    first = trained(desk)
    desk.write_clicks(user_id=[11, 12, 13, 14, 15, 16])

    second = trained(desk, new_data=True)
    documents = CheckpointStore(second.checkpoint.parent).open(6).documents
    (desk.folder / "run/checkpoints/step-6").rename(desk.folder / "kept")
    again = trained(desk, resume=True)

    assert (first.steps, second.steps, second.epochs, second.rows) == (3, 6, 2, 12)
    assert [record["step"] for record in steps_of(second.model_dir)] == [1, 2, 3, 4, 5, 6]
    assert (documents["progress"]["steps_before"], documents["progress"]["epochs_before"]) == (3, 1)
    assert again.steps == 6
    assert parameters(again.checkpoint) == parameters(desk.folder / "kept")


IN_BATCH = {
    "model_config.losses": [{"l2_loss": {}}],
    "model_config.metrics": [{"xauc": {"in_batch": True}}],
    "model_config.train_metrics": [{"xauc": {"in_batch": True}, "decay_step": 1}],
}


def test_xauc_inside_batches_of_neighbours_is_warned_of(desk, caplog):
    trained(desk, IN_BATCH)

    warnings = [record.message for record in caplog.records if "xauc" in record.message]
    assert [message.split(":")[0] for message in warnings] == [
        "model_config.metrics",
        "model_config.train_metrics",
    ]
    assert warnings[0].endswith(
        "xauc with in_batch compares rows that lie side by side in the data, and data_config.shuffle is off; "
        "shuffle them, or leave in_batch out"
    )


def test_a_metric_without_a_value_says_why_wherever_it_is_shown(desk):
    desk.write_clicks(click=[0, 0, 0, 0, 0, 0])

    done = desk.penstock("train", "run.yaml", "--plain")
    again = desk.penstock("eval", "run.yaml", "--eval_result_filename", "result.json")
    resumed = trained(desk, {"data_config.batch_size": 4}, resume=True)

    assert "auc undefined (no positive rows)" in done.stdout
    assert "auc undefined (no positive rows)" in done.stderr  # the line of the evaluation on the way
    [line] = re.findall(r"^train: step 2/2 .*$", done.stderr, re.MULTILINE)
    assert "  epoch 1/1  loss 0." in line
    assert len(line) <= 80
    assert "auc undefined (no positive rows)" in again.stdout
    record = json.loads((desk.folder / "run/eval_result.jsonl").read_text())
    result = json.loads((desk.folder / "run/result.json").read_text())
    for found in (record, result):
        assert (found["metrics"], found["remarks"]) == ({"auc": None}, {"auc": "no positive rows"})
    assert (resumed.trained_rows, resumed.remarks) == (0, {"auc": "no positive rows"})


def test_a_line_on_the_way_has_the_epoch_and_the_first_train_metric(desk):
    followed = "model_config.train_metrics=[{log_loss: {}, decay_step: 1}, {auc: {}, decay_step: 1}]"

    done = desk.penstock("train", "run.yaml", "--set", "train_config.num_epochs=2", "--set", followed)

    assert re.search(r"^train: step 4/4  epoch 2/2  log_loss \d\.\d{4}  rows/s ", done.stderr, re.MULTILINE)
    assert "loss" not in done.stderr.partition("rows/s")[2].partition("\n")[0]


def test_a_run_that_ends_between_two_lines_logs_its_last_steps(desk):
    """Three steps an epoch, a line every two: that of step 3 is of one step, and the next begins where it began."""
    every_two = {"train_config.log_step_count_steps": 2}
    whole = trained(desk, every_two | {"model_dir": "whole", "train_config.num_epochs": 2})
    trained(desk, every_two)
    assert [line["step"] for line in steps_of(desk.folder / "run")] == [2, 3]

    again = trained(desk, every_two | {"train_config.num_epochs": 2}, resume=True)

    in_one, in_two = steps_of(whole.model_dir), steps_of(again.model_dir)
    assert [line["step"] for line in in_two] == [2, 3, 4, 6]
    assert [line for line in in_two if line["step"] != 3] == in_one


def test_an_interrupted_run_writes_no_line_out_of_turn_and_says_that_it_goes_on(desk):
    class Interrupt:
        def on_save(self, step, metrics, control):
            if step == 1:
                os.kill(os.getpid(), signal.SIGINT)

    result = trained(desk, STEPS_OF_2 | {"train_config.log_step_count_steps": 2}, callbacks=[Interrupt()])

    assert (result.steps, result.exit_code) == (1, 130)
    assert steps_of(result.model_dir) == []
    assert log_of(result.model_dir)[-1]["stopped_because"] == "a signal; --continue_train goes on"


AVERAGED = ("{adam_optimizer: {lr: 0.1}}", "{adam_optimizer: {lr: 0.1}, ema: {decay: 0.9}}")
BY_PARAMETERS = ("--set", "eval_config.use_dense_ema=false")


def losses(desk, *words):
    """The loss that `eval` finds for the last checkpoint."""
    done = desk.penstock("eval", "run.yaml", "--eval_result_filename", "result.json", *words)
    assert done.exit_code == 0, done.stderr
    return json.loads((desk.folder / "run/result.json").read_text())["losses"]


def test_evaluation_uses_the_means_unless_asked_otherwise_and_training_is_the_same_without(trained_desk):
    desk, without = trained_desk, losses(trained_desk)
    (desk.folder / "run").rename(desk.folder / "without")
    desk.write_run(AVERAGED)

    assert desk.penstock("train", "run.yaml").exit_code == 0

    on_the_way = json.loads((desk.folder / "run/eval_result.jsonl").read_text().splitlines()[-1])["losses"]
    assert losses(desk) == pytest.approx(on_the_way)
    assert losses(desk) != pytest.approx(without)
    assert losses(desk, *BY_PARAMETERS) == without
    assert [line.get("loss") for line in log_of(desk.folder / "run")] == [
        line.get("loss") for line in log_of(desk.folder / "without")
    ]


def test_a_checkpoint_without_means_and_a_run_that_keeps_none_say_so(trained_desk):
    unkept = trained_desk.penstock("train", "run.yaml", "--set", "eval_config.use_dense_ema=true")
    trained_desk.write_run(AVERAGED)
    absent = trained_desk.penstock("eval", "run.yaml")

    assert unkept.exit_code == 1
    assert "eval_config.use_dense_ema: is true, but no means are kept; add train_config." in unkept.stderr
    assert absent.stderr == (
        "error: run/checkpoints/step-2: holds no running means of parameters; "
        "set eval_config.use_dense_ema: false\n"
    )
