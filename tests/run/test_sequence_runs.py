"""Runs on histories, from columns to checkpoints."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import penstock
from penstock.checkpoint import CheckpointStore
from tests.run.training_runs import parameters

RUN_FILE = """
train_input_path: clicks.parquet
eval_input_path: clicks.parquet
model_dir: run
memory: {limit: 8GiB}
data_config: {batch_size: 32, fg_mode: FG_NORMAL, label_fields: [label], shuffle: true}
feature_configs:
  - id_feature: {feature_name: item, num_buckets: 20, embedding_dim: 4, embedding_name: item_emb}
  - raw_feature: {feature_name: price, embedding_dim: 4, autodis: {num_channels: 3}}
  - sequence_feature:
      sequence_name: past
      sequence_length: 4
      features:
        - id_feature: {feature_name: item, num_buckets: 20, embedding_dim: 4, embedding_name: item_emb}
        - id_feature: {feature_name: tags, separator: "|", hash_bucket_size: 30, embedding_dim: 6, data_type: FP16}
        - raw_feature: {feature_name: price}
model_config:
  feature_groups:
    - group_name: all
      feature_names: [item, price]
      sequence_groups: [{feature_names: [item, past__item]}]
      sequence_encoders: [{pooling_encoder: {}}]
    - {group_name: past, group_type: SEQUENCE, feature_names: [item, past__item, past__tags, past__price]}
  multi_tower_din:
    towers: [{input: all, mlp: {hidden_units: [8]}}]
    din_towers: [{input: past, attn_mlp: {hidden_units: [8]}}]
    final: {hidden_units: [8]}
  losses: [{binary_cross_entropy: {}}]
  metrics: [{auc: {}}]
train_config:
  sparse_optimizer: {OPTIMIZER: {lr: 0.1}}
  dense_optimizer: {adam_optimizer: {lr: 0.01}}
  num_steps: 9
  save_checkpoints_steps: 3
  log_step_count_steps: 1
"""


@pytest.fixture
def clicks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Histories of 0 to 6 steps, as strings; every step has an item, one or two tags, and a price."""
    generator = np.random.default_rng(0)
    columns: dict[str, list[object]] = {}
    for _ in range(200):
        steps, item = generator.integers(0, 7), int(generator.integers(0, 20))
        past = generator.integers(0, 20, steps)
        tags = [
            "|".join(f"t{tag}" for tag in generator.integers(0, 9, generator.integers(1, 3))) for _ in past
        ]
        row = {
            "item": item,
            "price": float(generator.random()),
            "past__item": ";".join(map(str, past)),
            "past__tags": ";".join(tags),
            "past__price": ";".join(f"{price:.2f}" for price in generator.random(steps)),
            "label": int(item in past),
        }
        for name, value in row.items():
            columns.setdefault(name, []).append(value)
    pq.write_table(pa.table(columns), tmp_path / "clicks.parquet")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("optimizer", ["rowwise_adagrad_optimizer", "adam_optimizer"])
def test_a_resumed_run_on_histories_is_the_same_to_the_last_bit(clicks: Path, optimizer: str):
    (clicks / "run.yaml").write_text(RUN_FILE.replace("OPTIMIZER", optimizer))
    whole = penstock.train(penstock.load_run("run.yaml", {"model_dir": "whole"}))
    penstock.train(penstock.load_run("run.yaml", {"train_config.num_steps": 3}))
    resumed = penstock.train(penstock.load_run("run.yaml"), resume=True)

    assert resumed.steps == whole.steps == 9
    assert resumed.metrics == whole.metrics
    assert parameters(resumed.checkpoint) == parameters(whole.checkpoint)
    tags = next(
        tensor
        for name, tensor in CheckpointStore(clicks / "run/checkpoints").require_latest().tensors.items()
        if name.endswith("past__tags_emb.weight")
    )
    assert (tags.shape, tags.dtype) == ((30, 6), "float16")
