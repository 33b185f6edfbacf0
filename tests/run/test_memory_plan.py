"""Who gets how many bytes of the limit, and how the bytes of a model are counted before it is allocated."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
import yaml

import penstock
from penstock.config.errors import BudgetExceeded
from penstock.config.sizes import GIB, MIB
from penstock.data.memory_plan import EVALUATION, share_data_path
from penstock.optim.sparse import table_parameters
from penstock.readers.files import DataFile
from penstock.readers.scan import ReadSizes
from penstock.run.data import LargestBatch
from penstock.run.training import share_model, step_use
from penstock.runtime.budget import MemoryBudget
from penstock.training.sections import TrainConfig
from tests.cli.desk import RUN_FILE

NO_COLUMNS = pa.schema([])


@dataclass(frozen=True)
class Needs:
    """What a reader can use, as a scan tells it."""

    min_bytes: int = 1 * MIB
    ample_bytes: int = 512 * MIB
    block_bytes: int = 16 * MIB
    files: tuple[DataFile, ...] = ()
    columns: pa.Schema = NO_COLUMNS
    row_bytes: int = 1024

    @property
    def sizes(self):
        return ReadSizes(self.min_bytes, self.ample_bytes, self.block_bytes)


def planned(limit_bytes, streams=None, **data_path):
    budget = MemoryBudget(limit_bytes)
    for name, num_bytes in (("process", 400 * MIB), ("model", 100 * MIB), ("step", 12 * MIB)):
        budget.share(name, num_bytes)
    share_data_path(budget, streams or {"": Needs()}, **data_path)
    return {share.name: share.limit_bytes for share in budget.shares.values()}


def test_what_cannot_be_made_smaller_comes_first_and_the_data_path_shares_the_rest():
    plan = planned(1024 * MIB)

    assert list(plan) == ["process", "model", "step", "prefetch", "reader"]
    assert plan["prefetch"] == 64 * MIB
    assert plan["reader"] == 512 * MIB * 7 // 8 - 64 * MIB
    assert sum(plan.values()) < 1024 * MIB
    ample = planned(64 * GIB)
    assert (ample["prefetch"], ample["reader"], ample["read ahead"]) == (64 * MIB, 512 * MIB, 32 * MIB)


@pytest.mark.parametrize(
    ("needs", "data_path", "stage", "size"),
    [
        (Needs(ample_bytes=100 * MIB), {}, "read ahead", 2 * 16 * MIB),
        (Needs(ample_bytes=400 * MIB), {}, "read ahead", None),
        (Needs(), {"shuffle_rows": 1000}, "shuffle", 1000 * (1024 + 10) + MIB),
        (Needs(files=(DataFile("s3://bucket/a.parquet", 5),)), {}, "store windows", 16 * MIB),
        (Needs(), {"by_cost": True}, "cut", 64 * MIB),
        (Needs(), {"prefetch_bytes": 5 * MIB}, "prefetch", 5 * MIB),
        (Needs(ample_bytes=10 * MIB), {}, "reader", 10 * MIB),
        (Needs(min_bytes=400 * MIB), {"prefetch_bytes": MIB}, "reader", 447 * MIB),
    ],
)
def test_what_a_stage_gets_of_1gib(needs, data_path, stage, size):
    assert planned(1024 * MIB, {"": needs}, **data_path).get(stage) == size


def test_a_run_that_evaluates_has_shares_for_a_second_stream():
    plan = planned(1024 * MIB, {"": Needs(), EVALUATION: Needs()})

    assert list(plan)[3:] == ["prefetch", "reader", "evaluation prefetch", "evaluation reader"]
    assert plan["prefetch"] == plan["evaluation prefetch"] == 512 * MIB * 7 // 8 // 2 // 4
    assert plan["reader"] == plan["evaluation reader"]
    assert sum(plan.values()) < 1024 * MIB


def test_what_does_not_fit_names_the_setting_and_who_has_the_rest():
    """tests/end_to_end/wrong_input/test_limits.py holds the texts about the model, a batch and a shuffle."""
    with pytest.raises(BudgetExceeded) as caught:
        planned(1024 * MIB, {"": Needs(min_bytes=900 * MIB)})

    assert str(caught.value) == (
        "reader needs 900MiB but only 448MiB of 1GiB are left (process 400MiB, model 100MiB, step 12MiB, "
        "prefetch 64MiB); raise memory.limit"
    )


def model_bytes(train: dict[str, Any] | None) -> int:
    """The share of the model of the desk, of which only the dense part is counted."""
    run = penstock.RunConfig.model_validate(yaml.safe_load(RUN_FILE))
    model = penstock.build_model(run)
    config = None if train is None else TrainConfig.model_validate({"num_steps": 1, "dense_optimizer": train})
    step = step_use(model, LargestBatch(1, 8, "data_config.batch_size"), training=train is not None)
    budget = share_model(GIB, 1, model, [step], config)
    tables = sum(table.nbytes for _, table in table_parameters(model))
    return budget.shares["model"].limit_bytes - tables


@pytest.mark.parametrize(
    ("dense_optimizer", "copies"),
    [
        (None, 1),  # a model that only scores is there once
        ({"adam_optimizer": {}}, 4),
        ({"adamw_optimizer": {"amsgrad": True}, "ema": {}}, 7),
        (
            {
                "adagrad_optimizer": {},
                "part_optimizers": [{"regex_pattern": ".*", "adam_optimizer": {"amsgrad": True}}],
            },
            5,
        ),
    ],
)
def test_every_copy_that_an_optimizer_keeps_is_counted(dense_optimizer, copies):
    assert model_bytes(dense_optimizer) == copies * model_bytes(None) > 0
