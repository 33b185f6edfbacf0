"""What the training loop does beyond steps: accumulation, clipping, precision, bad losses, new data, metrics."""

import json

import pytest

from penstock.checkpoint import CheckpointStore
from penstock.config.errors import DataError
from tests.run.training_runs import log_of, parameters, steps_of, tensors, trained

HEAVY_ROWS = {"weight": [1.0, 1.0, 3.4e38, 3.4e38, 1.0, 1.0]}
"""The second batch of two rows: its weights are finite, but their sum is not, and the loss is not a number."""

WEIGHTED = {"data_config.sample_weight_fields": ["weight"]}


@pytest.mark.parametrize(
    "optimizer", ["sgd_optimizer", "adagrad_optimizer", "rowwise_adagrad_optimizer", "adam_optimizer"]
)
def test_accumulated_batches_are_one_larger_batch_to_the_last_bit(desk, optimizer):
    sparse = {"train_config.sparse_optimizer": {optimizer: {"lr": 0.1}}, "train_config.num_epochs": 3}
    sparse |= {"train_config.save_checkpoints_steps": 0}
    larger = {"data_config.batch_size": 4, "model_dir": "larger"}

    accumulated = trained(desk, sparse | {"train_config.gradient_accumulation_steps": 2})
    expected = trained(desk, sparse | larger)

    assert accumulated.steps == expected.steps == 6
    assert tensors(accumulated.checkpoint) == tensors(expected.checkpoint)
    assert steps_of(accumulated.model_dir) == steps_of(expected.model_dir)


def test_evaluation_keeps_its_batches_when_training_joins_them(desk):
    joined = {"train_config.gradient_accumulation_steps": 3, "eval_config.num_steps": 1}

    trained(desk, joined)

    record = json.loads((desk.folder / "run/eval_result.jsonl").read_text().splitlines()[0])
    assert record["rows"] == 2


@pytest.mark.parametrize("kind", ["norm", "value"])
def test_gradients_are_clipped_before_they_are_used(desk, kind):
    slow = {"train_config.dense_optimizer": {"sgd_optimizer": {"lr": 1.0}}, "train_config.num_steps": 1}
    slow |= {"train_config.num_epochs": None}
    clipping = {"clipping_type": kind, "max_gradient": 1e-9}

    free = trained(desk, slow | {"model_dir": "free"})
    clipped = trained(desk, slow | {"train_config.grad_clipping": clipping, "model_dir": "clipped"})
    still = trained(
        desk,
        slow | {"train_config.dense_optimizer": {"sgd_optimizer": {"lr": 0.0}}, "model_dir": "still"},
    )

    moved = [distance(run.checkpoint, still.checkpoint) for run in (free, clipped)]
    assert moved[0] > 1e-3
    assert moved[1] < 1e-7


def distance(one, other):
    """The largest difference between the dense parameters of two checkpoints."""
    first, second = weights(one), weights(other)
    names = [name for name in first if "embedding" not in name]
    assert names
    return max(float((first[name] - second[name]).abs().max()) for name in names)


def weights(checkpoint):
    """The model's parameters by name."""
    from safetensors.torch import load_file

    loaded = load_file(checkpoint / "rank-00000.safetensors")
    return {name: tensor for name, tensor in loaded.items() if name.startswith("model.")}


def test_bf16_trains_nearly_the_same(desk):
    exact = trained(desk, {"model_dir": "exact"})
    rounded = trained(desk, {"model_dir": "rounded", "train_config.mixed_precision": "BF16"})

    losses = [[record["loss"] for record in steps_of(run.model_dir)] for run in (exact, rounded)]
    assert losses[0] != losses[1]
    assert losses[1] == pytest.approx(losses[0], abs=0.02)


def test_rows_whose_loss_is_not_finite_stop_the_run_and_are_written_aside(desk):
    desk.write_clicks(**HEAVY_ROWS)

    with pytest.raises(DataError) as caught:
        trained(desk, WEIGHTED)

    path = desk.folder / "run/nonfinite/step-2.jsonl"
    assert str(caught.value) == (
        "step 2: the loss is nan on 2 rows (rows 2 to 3 of clicks.parquet); "
        "the rows are in run/nonfinite/step-2.jsonl: look at them, or lower the learning rate, "
        "or pass over such batches with train_config.on_nonfinite: skip"
    )
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(row["file"], row["row"], row["labels"]) for row in rows] == [
        ("clicks.parquet", 2, {"click": 0}),
        ("clicks.parquet", 3, {"click": 1}),
    ]
    assert rows[0]["features"] == {"price": 0.0, "user": [3], "item": [7]}
    assert rows[0]["weights"]["weight"] == pytest.approx(3.4e38)


def test_rows_whose_loss_is_not_finite_can_be_skipped_and_change_nothing(desk):
    desk.write_clicks(**HEAVY_ROWS)
    skip = WEIGHTED | {"train_config.on_nonfinite": "skip", "model_config.deepfm.deep.use_bn": True}
    skip |= {"train_config.save_checkpoints_steps": 0, "eval_input_path": ""}

    result = trained(desk, skip)
    desk.write_clicks(
        user_id=[1, 2, 5, 6],
        item_id=[9, 8, 5, 4],
        price=[0.5, 1.5, 3.5, 4.5],
        click=[0, 1, 0, 1],
        weight=[1.0] * 4,
    )
    without = trained(desk, skip | {"model_dir": "without"})

    assert (result.steps, result.rows, result.skipped_batches) == (2, 4, 1)
    assert tensors(result.checkpoint) == tensors(without.checkpoint)
    assert [record for record in log_of(result.model_dir) if record.get("event") == "skipped"] == [
        {"event": "skipped", "step": 2, "skipped_batches": 1, "num_rows": 2}
    ]


def test_the_skipped_are_in_the_summary_and_still_counted_after_a_resume(desk):
    desk.write_clicks(**HEAVY_ROWS)
    sets = (
        "train_config.on_nonfinite=skip",
        "data_config.batch_size=2",
        "data_config.sample_weight_fields=[weight]",
    )
    words = [word for one in sets for word in ("--set", one)]

    first = desk.penstock("train", "run.yaml", *words)
    again = desk.penstock(
        "train", "run.yaml", *words, "--continue_train", "--set", "train_config.num_epochs=2"
    )

    assert "skipped   1 batch whose loss was not finite; see run/nonfinite" in first.stdout
    assert "skipped   2 batches whose loss was not finite; see run/nonfinite" in again.stdout


def test_the_time_to_the_first_step_is_in_the_log(desk):
    result = trained(desk)

    start = log_of(result.model_dir)[0]
    assert start["event"] == "start"
    assert start["seconds_to_first_step"] > 0


def test_train_metrics_are_logged_and_go_on_exactly(desk):
    metrics = {"model_config.train_metrics": [{"auc": {}, "decay_rate": 0.5, "decay_step": 2}]}
    twice = metrics | {"train_config.num_epochs": 2}

    trained(desk, metrics)
    resumed = trained(desk, twice, resume=True)
    whole = trained(desk, twice | {"model_dir": "whole"})

    assert all("auc" in record["train_metrics"] for record in steps_of(whole.model_dir))
    assert steps_of(resumed.model_dir) == steps_of(whole.model_dir)
    assert parameters(resumed.checkpoint) == parameters(whole.checkpoint)


def test_the_log_says_what_there_is_to_know_about_a_train_metric(desk):
    desk.write_clicks(click=[0, 0, 0, 1, 1, 0])

    result = trained(desk, {"model_config.train_metrics": [{"auc": {}, "decay_step": 3}]})

    steps = [record for record in log_of(result.model_dir) if "loss" in record]
    assert [record["train_metrics"]["auc"] is None for record in steps] == [True, False, False]
    assert [record.get("train_remarks") for record in steps] == [
        {"auc": "no positive rows"},
        {"auc": "of the first window, which is still open"},
        None,
    ]


def test_a_log_that_does_not_fit_the_windows_of_train_metrics_is_told(desk, caplog):
    trained(desk, {"model_config.train_metrics": [{"auc": {}, "decay_step": 2}]})

    assert "train_config: log_step_count_steps 1 is not a multiple of decay_step 2" in caplog.text


def test_new_data_are_begun_with_everything_that_was_learned(desk):
    first = trained(desk)
    desk.write_clicks(user_id=[11, 12, 13, 14, 15, 16])

    second = trained(desk, new_data=True)

    assert (first.steps, second.steps, second.epochs, second.rows) == (3, 6, 2, 12)
    assert [record["step"] for record in steps_of(second.model_dir)] == [1, 2, 3, 4, 5, 6]
    documents = CheckpointStore(second.checkpoint.parent).open(6).documents
    assert (documents["progress"]["steps_before"], documents["progress"]["epochs_before"]) == (3, 1)


def test_a_run_on_new_data_that_was_stopped_goes_on_in_these(desk):
    trained(desk)
    desk.write_clicks(user_id=[11, 12, 13, 14, 15, 16])

    trained(desk, new_data=True)
    (desk.folder / "run/checkpoints/step-6").rename(desk.folder / "kept")
    again = trained(desk, resume=True)

    assert again.steps == 6
    assert parameters(again.checkpoint) == parameters(desk.folder / "kept")


IN_BATCH = {
    "model_config.losses": [{"l2_loss": {}}],
    "model_config.metrics": [{"xauc": {"in_batch": True}}],
}


def test_xauc_inside_batches_of_neighbours_is_told(desk, caplog):
    trained(desk, IN_BATCH | {"model_config.train_metrics": [{"xauc": {"in_batch": True}, "decay_step": 1}]})

    told = [record.message for record in caplog.records if "xauc" in record.message]
    assert [message.split(":")[0] for message in told] == [
        "model_config.metrics",
        "model_config.train_metrics",
    ]
    assert told[0].endswith(
        "xauc with in_batch compares rows that lie side by side in the data, and data_config.shuffle is off; "
        "shuffle them, or leave in_batch out"
    )


def test_shuffled_rows_may_be_compared_inside_batches(desk, caplog):
    trained(desk, IN_BATCH | {"data_config.shuffle": True})

    assert "xauc" not in caplog.text


def test_a_metric_without_a_value_says_why_wherever_it_is_told(desk):
    desk.write_clicks(click=[0, 0, 0, 0, 0, 0])
    desk.write_run()

    done = desk.penstock("train", "run.yaml", "--plain")
    again = desk.penstock("eval", "run.yaml", "--eval_result_filename", "result.json")

    assert "auc undefined (no positive rows)" in done.stdout
    assert "auc undefined (no positive rows)" in done.stderr  # the line of the evaluation on the way
    assert "auc undefined (no positive rows)" in again.stdout
    record = json.loads((desk.folder / "run/eval_result.jsonl").read_text())
    assert (record["metrics"], record["remarks"]) == ({"auc": None}, {"auc": "no positive rows"})
    result = json.loads((desk.folder / "run/result.json").read_text())
    assert (result["metrics"], result["remarks"]) == ({"auc": None}, {"auc": "no positive rows"})


def test_a_resumed_run_knows_why_a_metric_of_an_evaluation_before_has_no_value(desk):
    desk.write_clicks(click=[0, 0, 0, 0, 0, 0])
    trained(desk)

    again = trained(desk, resume=True)

    assert again.trained_rows == 0
    assert again.remarks == {"auc": "no positive rows"}


SHUFFLED = {
    "data_config.shuffle": True,
    "train_config.num_epochs": 2,
    "train_config.save_checkpoints_steps": 0,
}


def test_one_seed_gives_the_same_bytes_and_another_seed_others(desk):
    runs = [
        trained(desk, SHUFFLED | {"model_dir": name, "train_config.seed": seed})
        for name, seed in (("one", 1), ("again", 1), ("two", 2))
    ]

    one, again, two = (parameters(run.checkpoint) for run in runs)
    assert one == again
    assert tensors(runs[0].checkpoint) != tensors(runs[2].checkpoint)
    assert one.keys() == two.keys()
