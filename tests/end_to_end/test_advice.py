"""A run that really waits for its data is told what to change.

How much faster the data path gets is a matter of the machine and its cores: benchmarks/ measures it.
"""

import json
import re

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from penstock.config.sizes import format_size
from tests.end_to_end.conftest import Workplace

pytestmark = pytest.mark.slow
NUM_ROWS = 120_000


def id_feature(name):
    return {
        "id_feature": {
            "feature_name": name,
            "expression": f"user:{name}",
            "num_buckets": 1000,
            "embedding_dim": 4,
        }
    }


def waiting_place(folder, path, features, **data_config):
    """A run whose model is next to nothing."""
    names = [next(iter(feature.values()))["feature_name"] for feature in features]
    run = {
        "train_input_path": path,
        "model_dir": "run",
        "data_config": {"label_fields": ["click"], "num_workers": 0, **data_config},
        "feature_configs": features,
        "model_config": {
            "feature_groups": [
                {"group_name": "wide", "group_type": "WIDE", "feature_names": ["user"]},
                {"group_name": "deep", "group_type": "DEEP", "feature_names": names},
            ],
            "deepfm": {"deep": {"hidden_units": [4]}},
            "losses": [{"binary_cross_entropy": {}}],
        },
        "train_config": {
            "num_epochs": 1,
            "save_checkpoints_steps": 0,
            "log_step_count_steps": 10,
            "sparse_optimizer": {"sgd_optimizer": {}},
            "dense_optimizer": {"sgd_optimizer": {}},
        },
    }
    (folder / "run.yaml").write_text(yaml.safe_dump(run))
    return Workplace(folder, folder, folder / "run.yaml")


def test_numbers_as_text_are_to_be_parsed_by_workers(tmp_path):
    generator = np.random.default_rng(0)
    texts = ["\x1d".join(map(str, row)) for row in generator.random((1000, 256)).round(6)]
    table = {
        "user": generator.integers(0, 1000, NUM_ROWS),
        "click": generator.integers(0, 2, NUM_ROWS),
        "vector": texts * (NUM_ROWS // 1000),
    }
    pq.write_table(pa.table(table), tmp_path / "rows.parquet", row_group_size=10_000, use_dictionary=False)
    vector = {"raw_feature": {"feature_name": "vector", "expression": "item:vector", "value_dim": 256}}
    features = [id_feature("user"), vector]
    place = waiting_place(tmp_path, "rows.parquet", features, batch_size=2048, fg_mode="FG_NORMAL")

    done = place.penstock("train", "run.yaml")

    assert done.code == 0, done.err
    [line] = [line for line in done.out.splitlines() if line.startswith("advice")]
    advice = json.loads((tmp_path / "run" / "log.jsonl").read_text().splitlines()[-1])["advice"]
    assert advice["setting"] == "data_config.num_workers"
    assert advice["text"] in (tmp_path / "run" / "report.html").read_text("utf-8")
    cost = format_size(advice["extra_bytes"])
    assert re.search(
        rf"parsing is the bottleneck; data_config.num_workers: [1-9]\d* would take about {cost} more", line
    )
