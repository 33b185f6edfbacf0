"""Parts of a run as objects, for looking, testing and serving: features, model, one batch, a data loader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.config.nearest import hint
from penstock.features.build import build_features
from penstock.features.feature import Feature
from penstock.features.parser import Parser
from penstock.models import build_model as build_model_of
from penstock.pipeline.data import (
    find_files,
    open_source,
    resumed_state,
    scoring_batches,
    shuffle_rows,
    training_batches,
)
from penstock.pipeline.memory_plan import StageShares, limit_of, share_data_path, shuffle_bytes_of
from penstock.pipeline.requirements import model_section, require_available
from penstock.pipeline.run_config import RunConfig
from penstock.readers.blocks import Shard
from penstock.readers.columns import project
from penstock.runtime.budget import MemoryBudget
from penstock.runtime.state import State
from penstock.runtime.world import World

if TYPE_CHECKING:
    from penstock.batching.prefetch import Prefetch
    from penstock.models.model import Model
    from penstock.tensors.batch import Batch


MODES = ("train", "eval", "predict")


def used_features(run: RunConfig) -> list[Feature]:
    """The features that a feature group of the model uses."""
    groups = model_section(run).feature_groups
    used = {name for group in groups for name in group.feature_names}
    return build_features(run.feature_configs, run.data_config, used)


def build_parser(run: RunConfig, file_paths: list[str] | None = None, with_labels: bool = True) -> Parser:
    """What turns record batches into parsed columns for this run."""
    data = run.data_config
    labels, weights = (data.label_fields, data.sample_weight_fields) if with_labels else ((), ())
    binary = model_section(run).binary_labels(data.label_fields)
    return Parser(used_features(run), labels, weights, file_paths or [], binary)


def build_model(run: RunConfig) -> "Model":
    """The model alone, unsharded, with fresh parameters: `model.predict(batch)`, `model.loss(predictions, batch)`."""
    require_available(run)
    data = run.data_config
    return build_model_of(
        model_section(run), used_features(run), data.label_fields, data.sample_weight_fields
    )


def build_batch(
    run: RunConfig, table: pa.Table | pa.RecordBatch, reserved_columns: Sequence[str] = ()
) -> "Batch":
    """Parse one Arrow table with a run's features; labels are read where the table has them."""
    from penstock.tensors.packing import pack

    require_available(run)
    labels = [*run.data_config.label_fields, *run.data_config.sample_weight_fields]
    parser = build_parser(run, with_labels=all(name in table.schema.names for name in labels))
    needed = project(table.schema, [*dict.fromkeys([*parser.columns, *reserved_columns])], "the table")
    batch = one_record_batch(table.select(needed.names))
    reserves = batch.select(list(reserved_columns)) if reserved_columns else None
    return pack(parser.parse(batch), reserves)


def one_record_batch(table: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """A table as one contiguous record batch."""
    if isinstance(table, pa.RecordBatch):
        return table
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def create_dataloader(
    run: RunConfig,
    mode: Literal["train", "eval", "predict"] = "train",
    world: World | None = None,
    states: Sequence[State] = (),
) -> "Prefetch[Batch]":
    """Batches of a run's data, with `state_dict`; use it in a `with` block, or close it.

    "train" reads train_input_path, in training order; "eval" and "predict" read eval_input_path in the order of the
    files, "predict" without labels. With a `world` of several ranks, each rank reads its part of the rows. `states`
    are what `state_dict` gave on every rank at one moment: the rest of that epoch follows, on as many ranks as there
    are now.
    """
    if mode not in MODES:
        raise ConfigError(f"create_dataloader: mode is {mode!r}; {hint(str(mode), MODES)}")
    require_available(run)
    world = world or World()
    data = run.data_config
    key = "train_input_path" if mode == "train" else "eval_input_path"
    files = find_files(getattr(run, key), key)
    parser = build_parser(run, [file.path for file in files], with_labels=mode != "predict")
    source = open_source(data, files, parser)
    budget = MemoryBudget(limit_of(run.memory))
    num_shuffle_rows = shuffle_rows(data, source) if mode == "train" else 0
    shuffle_bytes = shuffle_bytes_of(source.survey, num_shuffle_rows)
    share_data_path(
        budget,
        {"": source.survey},
        shuffle_bytes=shuffle_bytes,
        prefetch_bytes=data.prefetch,
        by_cost=mode == "train" and source.cutting.cost is not None,
    )
    shares, shard = StageShares.of(budget), Shard(world.rank, world.num_ranks)
    if mode == "train":
        batches = training_batches(data, source, shares, num_shuffle_rows, shard)
    else:
        batches = scoring_batches(source, shares, batch_size=data.resolved_eval_batch_size(), shard=shard)
    if states:
        batches.load_state_dict(resumed_state(states, source, shares, shard))
    return batches
