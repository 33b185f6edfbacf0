"""From a run file to a trained model, and from there to metrics and predictions."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import penstock

LogOf = Callable[[str | Path], list[dict[str, Any]]]


def trained(edits: Mapping[str, Any] | None = None, **options: Any) -> penstock.TrainResult:
    return penstock.train(penstock.load_run("run.yaml", edits), **options)


def losses(log: list[dict[str, Any]]) -> dict[int, float]:
    return {record["step"]: record["loss"] for record in log if "loss" in record}


def tensors(checkpoint: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in checkpoint.glob("*.safetensors")}


def test_all_problems_of_a_run_file_are_told_at_once(folder: Path):
    edits = {
        "data_config.batch_size": "many",
        "train_config.num_epoch": 3,
        "memory.limit": "lots",
    }

    with pytest.raises(penstock.ConfigError) as told:
        penstock.load_run("run.yaml", edits)

    assert str(told.value).splitlines() == [
        "run.yaml: 3 problems:",
        "  train_config.num_epoch: unknown path; did you mean 'train_config.num_epochs'?",
        "  memory.limit: is 'lots'; expected a size such as 4GiB, 64MiB, 10MB or a number of bytes",
        "  data_config.batch_size: is 'many'; expected an integer",
    ]


def test_edits_change_a_run(folder: Path):
    run = penstock.load_run("run.yaml", ["data_config.batch_size=16", "memory.limit=4GiB"])

    assert (run.data_config.batch_size, run.memory.limit) == (16, 4 << 30)
    assert penstock.RunConfig(model_dir="run").data_config.batch_size == 1024


def test_train_evaluate_and_predict_agree(folder: Path):
    result = trained()
    run = penstock.load_run("run.yaml")

    values = penstock.evaluate(run)
    scores = penstock.predict(run, "clicks.parquet", reserved_columns=["user_id", "click"])
    written = penstock.predict(run, "clicks.parquet", "scores.parquet")

    assert (result.steps, result.epochs, result.rows, result.exit_code) == (6, 2, 40, 0)
    assert values == {**result.losses, **result.metrics}
    assert scores["user_id"].to_pylist() == list(range(20))
    probs, labels = scores["probs"].to_numpy(), scores["click"].to_numpy()
    cross_entropy = -np.mean(labels * np.log(probs) + (1 - labels) * np.log(1 - probs))
    assert values["binary_cross_entropy"] == pytest.approx(cross_entropy, abs=1e-5)
    assert written.rows == pq.read_table("scores.parquet").num_rows == 20
    assert pq.read_table("scores.parquet")["probs"].to_pylist() == probs.tolist()


def test_a_table_in_memory_is_scored_like_a_file(trained_folder: Path):
    run = penstock.load_run("run.yaml")
    table = pq.read_table("clicks.parquet").drop(["click"])

    assert penstock.predict(run, table) == penstock.predict(run, "clicks.parquet")


def test_the_same_run_twice_is_the_same_to_the_last_bit(folder: Path, log_of: LogOf):
    first, second = (trained({"model_dir": name}) for name in ("first", "second"))

    assert losses(log_of("first")) == losses(log_of("second"))
    assert tensors(first.checkpoint) == tensors(second.checkpoint)


@pytest.mark.parametrize("steps", [1, 2, 4, 5])
def test_a_run_that_goes_on_is_the_same_to_the_last_bit(trained_folder: Path, log_of: LogOf, steps: int):
    class StopAt:
        def on_log(self, step: int, metrics: Mapping[str, float], control: Any) -> None:
            if step == steps:
                control.stop("enough for today")

    stopped = trained({"model_dir": "parts"}, callbacks=[StopAt()])
    result = trained({"model_dir": "parts"}, resume=True)

    assert (stopped.steps, stopped.stopped_because) == (steps, "enough for today")
    assert (result.steps, result.rows) == (6, 40)
    assert losses(log_of("parts")) == losses(log_of("run"))
    assert tensors(result.checkpoint) == tensors(trained_folder / "run" / "checkpoints" / "step-6")


def test_callbacks_are_told_what_happens_and_may_change_it(folder: Path, log_of: LogOf):
    heard = []

    class Listener:
        def on_log(self, step: int, metrics: Mapping[str, float], control: Any) -> None:
            heard.append(("log", step))
            if step == 1:
                control.set_learning_rate(0.01, "dense")

        def on_save(self, step: int, metrics: Mapping[str, float], control: Any) -> None:
            heard.append(("save", step))

        def on_eval(self, step: int, metrics: Mapping[str, float], control: Any) -> None:
            heard.append(("eval", step))
            assert {"auc", "binary_cross_entropy"} <= metrics.keys()

        def on_end(self, step: int, metrics: Mapping[str, float], control: Any) -> None:
            heard.append(("end", step))

    trained({"train_config.num_epochs": 1}, callbacks=[Listener()])

    assert heard == [
        ("log", 1),
        ("log", 2),
        ("save", 2),
        ("eval", 2),
        ("log", 3),
        ("save", 3),
        ("eval", 3),
        ("end", 3),
    ]
    rates = [record["learning_rate"]["dense"] for record in log_of("run") if "loss" in record]
    assert rates == [0.05, 0.01, 0.01]


def test_build_model_and_build_batch(folder: Path):
    run = penstock.load_run("run.yaml")
    table = pq.read_table("clicks.parquet")

    batch = penstock.build_batch(run, table, reserved_columns=["user_id"])
    model = penstock.build_model(run)
    predictions = model.predict(batch)

    assert (batch.num_rows, batch.labels["click"].tolist()) == (20, table["click"].to_pylist())
    assert batch.reserves.get()["user_id"].to_pylist() == table["user_id"].to_pylist()
    assert {name: tuple(values.shape) for name, values in predictions.items()} == {
        "logits": (20,),
        "probs": (20,),
    }
    assert model.loss(predictions, batch).keys() == {"binary_cross_entropy"}


def test_a_schedule_can_be_looked_at():
    decay = {"exponential_decay_learning_rate": {"decay_size": 2, "decay_factor": 0.5}}

    assert penstock.preview_schedule(decay, 0.01, 4) == [0.01, 0.01, 0.005, 0.005, 0.0025]


def test_a_budget_is_shared_and_leased():
    share = penstock.MemoryBudget(100).share("reader", 60)

    with share.lease(50):
        assert share.held_bytes == 50
    with pytest.raises(penstock.BudgetExceeded):
        share.acquire(61)


def test_progress_is_counted(capsys: pytest.CaptureFixture[str]):
    with penstock.ProgressLogger("upload", "file", total=3, plain=True) as progress:
        for _ in range(3):
            progress.advance()

    assert capsys.readouterr().err.startswith("upload: file 3/3")
