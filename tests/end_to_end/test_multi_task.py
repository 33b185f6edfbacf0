"""Multi-task run files from the command line: the examples, heads with masks, and sessions."""

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from penstock.prep.sample_data.blocks import read_summary
from penstock.prep.sample_data.write import write_sample_data
from tests.end_to_end.conftest import Workplace

EXAMPLES = Path(__file__).parents[2] / "examples"
OPTIMIZERS = {
    "sparse_optimizer": {"adagrad_optimizer": {"lr": 0.2}},
    "dense_optimizer": {"adam_optimizer": {"lr": 0.01}},
}
STATE = {
    "id_feature": {"feature_name": "state", "expression": "item:state", "num_buckets": 40, "embedding_dim": 8}
}
GROUP = {"group_name": "deep", "group_type": "DEEP", "feature_names": ["state"]}


def trained_metrics(place, run_file, *words):
    # The limit of an example is for a process of its own; this one holds the tests too.
    done = place.penstock("train", run_file, "--model_dir", "run", "--memory", "8GiB", *words)
    assert done.code == 0, done.err
    return json.loads((place.folder / "run/eval_result.jsonl").read_text().splitlines()[-1])["metrics"]


@pytest.fixture(scope="module")
def many_clicks(tmp_path_factory):
    """As many rows as it takes to learn three tasks."""
    data = tmp_path_factory.mktemp("clicks") / "data"
    write_sample_data("clicks", 100_000, data)
    return data


def example_metrics(folder, data, example):
    place = Workplace(folder, data, EXAMPLES / example)
    inputs = "--train_input_path", f"{data}/train/*.parquet", "--eval_input_path", f"{data}/test/*.parquet"
    return trained_metrics(place, EXAMPLES / example, *inputs), read_summary(data).splits["test"].labels


def test_simple_multi_task_learns_all_three(tmp_path, many_clicks):
    metrics, labels = example_metrics(tmp_path, many_clicks, "simple_multi_task.yaml")

    assert 0.74 < metrics["auc_click"] < labels["click"].attainable_auc
    assert 0.74 < metrics["auc_buy"] < labels["buy"].attainable_auc
    assert metrics["root_mean_squared_error_watch"] < 23


def write_moves(path, num_rows):
    """In each state one move is best, if it is allowed; else the one after it. A second head says if it was."""
    generator = np.random.default_rng(0)
    state = generator.integers(0, 40, num_rows)
    best = state % 3
    allowed = np.ones((num_rows, 3), np.int8)
    allowed[np.arange(num_rows), best] = generator.random(num_rows) < 0.5
    is_free = allowed[np.arange(num_rows), best].astype(bool)
    columns = {
        "state": state,
        "move": np.where(is_free, best, (best + 1) % 3),
        "even": state % 2,
        "allowed": pa.FixedSizeListArray.from_arrays(pa.array(allowed.reshape(-1)), 3),
        "session": [f"s{row // 8}" for row in range(num_rows)],
    }
    pq.write_table(pa.table(columns), path)


def write_run(folder, **changes):
    write_moves(folder / "moves.parquet", 8_000)
    run = {
        "train_input_path": "moves.parquet",
        "eval_input_path": "moves.parquet",
        "data_config": {"batch_size": 256},
        "feature_configs": [STATE],
        "train_config": {"num_epochs": 3, **OPTIMIZERS},
        **changes,
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(run))
    return Workplace(folder, folder, folder / "run.yaml")


def head(name, label, num_class, **options):
    return {
        "tower_name": name,
        "label_name": label,
        "num_class": num_class,
        "losses": [{"softmax_cross_entropy": {}}],
        "metrics": [{"accuracy": {}}],
        **options,
    }


def test_heads_with_masks_learn_and_never_predict_what_is_masked(tmp_path):
    towers = [
        head("move", "move", 3, mask_name="allowed", mlp={"hidden_units": [16]}),
        head("even", "even", 2),
    ]
    place = write_run(
        tmp_path,
        data_config={"batch_size": 256, "label_fields": ["move", "even"]},
        model_config={"feature_groups": [GROUP], "simple_multi_task": {"task_towers": towers}},
    )
    metrics = trained_metrics(place, "run.yaml")
    done = place.penstock(
        "predict", "run.yaml", "--model_dir", "run", "--predict_input_path", "moves.parquet",
        "--predict_output_path", "out.parquet", "--reserved_columns", "allowed",
    )  # fmt: skip

    assert done.code == 0, done.err
    assert metrics["accuracy_move"] > 0.95
    assert metrics["accuracy_even"] == 1.0
    written = pq.read_table(tmp_path / "out.parquet")
    probs = np.stack(written["probs_move"].to_numpy())
    masked = np.stack(written["allowed"].to_numpy()) == 0
    assert written.schema.names[1:] == [
        "logits_move",
        "probs_move",
        "logits_even",
        "probs_even",
        "probs1_even",
    ]
    assert probs[masked].max() == 0.0
    assert probs.sum(axis=1).min() > 0.999


def test_the_loss_of_a_tower_says_that_its_weight_is_in_it(tmp_path):
    towers = [head("even", "even", 2), head("move", "move", 3, weight=0.25)]
    place = write_run(
        tmp_path,
        data_config={"batch_size": 256, "label_fields": ["move", "even"]},
        model_config={"feature_groups": [GROUP], "simple_multi_task": {"task_towers": towers}},
        train_config={"num_steps": 2, **OPTIMIZERS},
    )
    done = place.penstock("train", "run.yaml", "--model_dir", "run")

    shown = " ".join(done.out.split())
    assert re.search(r"softmax_cross_entropy_move 0\.\d{4} \(weight 0\.25 included\) speed ", shown), done.err
    assert re.search(r"softmax_cross_entropy_even 0\.\d{4} softmax_cross_entropy_move ", shown)


def test_sessions_come_from_a_column_that_is_no_feature(tmp_path):
    place = write_run(
        tmp_path,
        data_config={"batch_size": 256, "label_fields": ["even"]},
        model_config={
            "feature_groups": [GROUP],
            "deepfm": {"deep": {"hidden_units": [16]}},
            "num_class": 2,
            "losses": [{"jrc_loss": {"session_name": "session"}}],
            "metrics": [{"auc": {}}],
        },
    )

    assert trained_metrics(place, "run.yaml")["auc"] > 0.99
