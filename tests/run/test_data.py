"""From a run to its batches: how many, how many rows are shuffled, the order of scoring, and what its parser reads."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import penstock
from penstock.config.sizes import GIB, MIB
from penstock.features.parser import Parser
from penstock.readers.files import list_files
from penstock.run.data import build_parser, open_batches, open_source, plan_data_path
from penstock.run.run_config import DataConfig
from penstock.runtime.budget import MemoryBudget
from tests.cli.desk import RUN_FILE

PARSER = Parser([], label_fields=["click"])


def data(**options) -> DataConfig:
    return DataConfig(batch_size=4, label_fields=["click"], **options)


@pytest.fixture
def files(tmp_path):
    """Ten rows in two files, numbered from 0 by their label."""
    for index, labels in enumerate([range(6), range(6, 10)]):
        table = pa.table({"click": list(labels), "other": ["x"] * len(labels)})
        pq.write_table(table, tmp_path / f"{index}.parquet")
    return list_files(str(tmp_path))


def test_batches_and_rows_of_the_shuffle_are_counted_before_they_are_read(files):
    def shuffle_rows(**options) -> int:
        config = data(**options)
        return plan_data_path(MemoryBudget(GIB), config, open_source(config, files, PARSER))[0]

    assert open_source(data(), files, PARSER).num_batches() == 3
    assert open_source(data(drop_remainder=True), files, PARSER).num_batches() == 2
    assert shuffle_rows() == 0
    assert 10_000 < shuffle_rows(shuffle=True, shuffle_buffer="1MiB") <= 2**20 // 8
    assert shuffle_rows(shuffle=True, shuffle_buffer_size=32) == 32 * 4  # of old: in batches


def test_scoring_keeps_the_order_and_every_row_though_training_shuffles(files):
    config = data(shuffle=True, drop_remainder=True)
    kept = open_source(config, files, PARSER, ["click"], mode="predict", batch_size=3)
    budget = MemoryBudget(64 * MIB)
    budget.share("reader", 16 * MIB)
    budget.share("prefetch", 16 * MIB)

    with open_batches(config, kept, budget) as batches:
        found = [batch.reserves.get()["click"].to_pylist() for batch in batches]

    assert found == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]


def run_with(**model):
    run = yaml.safe_load(RUN_FILE)
    run["model_config"] = {**run["model_config"], **model}
    return penstock.RunConfig.model_validate(run)


def test_a_session_is_the_column_of_a_feature_or_the_column_of_this_name():
    feature = run_with(num_class=2, losses=[{"jrc_loss": {"session_name": "user"}}])
    other = run_with(num_class=2, losses=[{"jrc_loss": {"session_name": "visit_id"}}])

    assert build_parser(feature).sessions == {"user": "user_id"}
    assert build_parser(other).sessions == {"visit_id": "visit_id"}
    assert build_parser(other, with_labels=False).sessions == {}


def test_masks_are_read_for_prediction_too():
    head = {"tower_name": "move", "label_name": "click", "num_class": 3, "mask_name": "allowed"}
    losses = [{"softmax_cross_entropy": {}}]
    run = run_with(
        deepfm=None,
        losses=[],
        metrics=[],
        feature_groups=[{"group_name": "all", "feature_names": ["user"]}],
        simple_multi_task={"task_towers": [{**head, "losses": losses}]},
    )

    parser = build_parser(run, with_labels=False)

    assert parser.masks == {"allowed": 3}
    assert parser.columns == ("user_id", "allowed")
