"""What `import penstock` offers: pinned, cheap to import, and still there after every module was imported."""

import importlib
import importlib.metadata
import inspect
import pkgutil
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

import penstock
from tests.cli.desk import CLICKS, Desk

NAMES = [
    "Batch",
    "BudgetExceeded",
    "CheckpointError",
    "ConfigError",
    "DataError",
    "Dataset",
    "MemoryBudget",
    "PenstockError",
    "PrepResult",
    "ProgressLogger",
    "Ragged",
    "RecordBatchTensor",
    "RunConfig",
    "TrainResult",
    "World",
    "arrays_to_samples",
    "build_batch",
    "build_model",
    "create_dataloader",
    "evaluate",
    "from_arrays",
    "load_batch",
    "load_run",
    "merge",
    "predict",
    "prepare",
    "preview_schedule",
    "read_arrow",
    "read_csv",
    "read_json",
    "read_numpy",
    "read_parquet",
    "read_store",
    "read_tfrecord",
    "samples_to_arrays",
    "save_batch",
    "train",
    "write_tfrecord",
]

LOADED = """
import sys
import penstock
print(*(name for name in ("torch", "numpy", "pyarrow", "pydantic") if name in sys.modules))
"""


def test_the_names_are_pinned():
    assert sorted(penstock.__all__) == NAMES
    assert set(NAMES) <= set(dir(penstock))


def test_importing_loads_nothing_that_takes_long():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_every_module_can_be_imported_and_hides_no_public_name():
    modules = [module.name for module in pkgutil.walk_packages(penstock.__path__, "penstock.")]

    for module in modules:
        importlib.import_module(module)

    assert len(modules) > 200
    for name in NAMES:
        public = getattr(penstock, name)
        assert callable(public)
        assert not inspect.ismodule(public)
        assert inspect.getdoc(public), name


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match=r"^module 'penstock' has no attribute 'trian'$"):
        _ = penstock.trian


def test_the_version_is_that_of_the_package():
    assert penstock.__version__ == importlib.metadata.version("penstock")


def test_errors_are_a_tree():
    for error in (
        penstock.ConfigError,
        penstock.DataError,
        penstock.BudgetExceeded,
        penstock.CheckpointError,
    ):
        assert issubclass(error, penstock.PenstockError)


def test_train_evaluate_and_predict(desk: Desk):
    run = penstock.load_run("run.yaml", {"train_config.num_epochs": 2})

    trained = penstock.train(run)
    assert isinstance(trained, penstock.TrainResult)
    assert (trained.steps, trained.rows, trained.exit_code) == (4, 12, 0)

    values = penstock.evaluate(run, "best")
    assert values.keys() == {"auc", "binary_cross_entropy"}
    assert penstock.evaluate(run) == {**trained.losses, **trained.metrics}

    scores = penstock.predict(run, "clicks.parquet", reserved_columns=["user_id"])
    assert scores["user_id"].to_pylist() == CLICKS["user_id"]
    written = penstock.predict(run, "clicks.parquet", "scores.parquet")
    assert (written.rows, written.output.name) == (6, "scores.parquet")


def test_a_resumed_run_is_trained_on(trained_desk: Desk):
    run = penstock.load_run("run.yaml", ["train_config.num_epochs=3"])

    assert penstock.train(run, resume=True).steps == 6


def test_build_model_and_build_batch(desk: Desk):
    run = penstock.load_run("run.yaml")
    batch = penstock.build_batch(run, pa.table(CLICKS))
    model = penstock.build_model(run)

    assert isinstance(batch, penstock.Batch)
    assert batch.num_rows == 6
    predictions = model.predict(batch)
    assert predictions.keys() == {"logits", "probs"}
    assert model.loss(predictions, batch).keys() == {"binary_cross_entropy"}


def test_a_batch_without_labels_can_be_scored(desk: Desk):
    table = pa.table({name: values for name, values in CLICKS.items() if name != "click"})

    batch = penstock.build_batch(penstock.load_run("run.yaml"), table, reserved_columns=["user_id"])

    assert batch.labels == {}
    assert batch.reserves.get()["user_id"].to_pylist() == CLICKS["user_id"]


@pytest.mark.parametrize("mode", ["train", "eval", "predict"])
def test_create_dataloader(desk: Desk, mode: str):
    run = penstock.load_run("run.yaml")

    with penstock.create_dataloader(run, mode) as batches:
        first = next(iter(batches))
        place = batches.state_dict()
    with penstock.create_dataloader(run, mode) as batches:
        batches.load_state_dict(place)
        rest = [batch.num_rows for batch in batches]

    assert (first.num_rows, rest) == (4, [2])
    assert (first.labels == {}) is (mode == "predict")


def test_two_ranks_read_every_row_once(desk: Desk):
    run = penstock.load_run("run.yaml")

    num_rows = []
    for rank in range(2):
        with penstock.create_dataloader(run, world=penstock.World(rank, num_ranks=2)) as batches:
            num_rows.append(sum(batch.num_rows for batch in batches))

    assert num_rows == [3, 3]


def test_a_budget_is_shared_and_leased():
    share = penstock.MemoryBudget(100).share("reader", 60)

    with share.lease(50):
        assert share.held_bytes == 50
    with pytest.raises(penstock.BudgetExceeded):
        share.acquire(61)


def test_columns_are_carried_along():
    columns = pa.RecordBatch.from_pydict({"user": ["a"]})

    assert penstock.RecordBatchTensor(columns).get() == columns


def test_a_run_config_needs_no_file():
    assert penstock.RunConfig(model_dir="run").data_config.batch_size == 1024


def test_arrays_in_three_lines():
    for batch in (
        penstock.from_arrays({"x": np.zeros((5, 2)), "y": np.arange(5)}).shuffle("64MiB", seed=7).batch(5)
    ):
        assert batch["x"].shape == (5, 2)
        assert sorted(batch["y"]) == [0, 1, 2, 3, 4]


def test_a_loop_over_arrays_imports_no_torch():
    code = (
        "import sys, penstock, numpy; list(penstock.from_arrays({'x': numpy.zeros(3)}).batch(2));"
        "print(*(name for name in ('torch', 'tensorflow', 'numba') if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_a_schedule_can_be_looked_at():
    decay = {"exponential_decay_learning_rate": {"decay_size": 2, "decay_factor": 0.5}}

    assert penstock.preview_schedule(decay, 0.01, 4) == [0.01, 0.01, 0.005, 0.005, 0.0025]
