"""Runs that really wait for their data are told what to change.

How much faster the data path gets is a matter of the machine and its cores: benchmarks/ measures it.
"""

import gzip
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
import yaml

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


class Outcome:
    """What a run told of itself."""

    def __init__(self, place, model_dir, *words):
        done = place.penstock("train", "run.yaml", "--model_dir", model_dir, *words)
        assert done.code == 0, done.err
        self.told = " ".join(done.out.partition("advice")[2].partition("speed")[0].split())
        log = [json.loads(line) for line in (place.folder / model_dir / "log.jsonl").read_text().splitlines()]
        self.losses = {record["step"]: record["loss"] for record in log if "loss" in record}
        self.advice = log[-1]["advice"]
        self.report = (place.folder / model_dir / "report.html").read_text("utf-8")


def test_compressed_csv_is_to_be_rewritten(tmp_path):
    generator = np.random.default_rng(0)
    notes = [f"a remark that nobody reads {number}" for number in range(1000)] * (NUM_ROWS // 1000)
    table = {"user": generator.integers(0, 1000, NUM_ROWS), "click": generator.integers(0, 2, NUM_ROWS)}
    content = io.BytesIO()
    pyarrow.csv.write_csv(pa.table(table | {f"note_{number}": notes for number in range(40)}), content)
    (tmp_path / "rows.csv.gz").write_bytes(gzip.compress(content.getvalue(), compresslevel=1))
    place = waiting_place(tmp_path, "rows.csv.gz", [id_feature("user")], batch_size=2048, with_header=True)

    waiting = Outcome(place, "waiting")
    rewritten = place.penstock("rewrite", "rows.csv.gz", "rows")
    following = Outcome(place, "following", "--train_input_path", "rows/*.parquet")

    assert waiting.advice["setting"] == "penstock rewrite"
    assert waiting.advice["text"] in waiting.report
    assert waiting.told == waiting.advice["text"]
    assert "reading is the bottleneck; CSV files as Parquet (`penstock rewrite`, then " in waiting.told
    assert rewritten.code == 0, rewritten.err
    assert following.losses == waiting.losses
    assert following.advice is None or "as Parquet" not in following.advice["text"]
