"""Parts of a run as objects, for looking, testing and serving: features, model, one batch, a data loader."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.features.build import build_features
from penstock.features.feature import Feature
from penstock.features.parser import Parser
from penstock.features.task_columns import SideColumns
from penstock.models import build_model as build_model_of
from penstock.models.sections import ModelConfig
from penstock.pipeline.grouping import columns_of
from penstock.pipeline.requirements import model_section, require_available
from penstock.pipeline.run_config import RunConfig
from penstock.readers.columns import project

if TYPE_CHECKING:
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
    model, features = model_section(run), used_features(run)
    side = SideColumns(model.masks(), session_columns(model, run) if with_labels else {})
    return Parser(features, labels, weights, file_paths or [], model.binary_labels(data.label_fields), side)


def session_columns(model: ModelConfig, run: RunConfig) -> dict[str, str]:
    """The column of every session_name: that of the feature of this name, or else the one called so."""
    names = model.session_names()
    return columns_of(run, names)


def build_model(run: RunConfig) -> "Model":
    """The model alone, unsharded, with fresh parameters: `model.predict(batch)`, `model.loss(predictions, batch)`.

    Its metrics are attached: `model.update_metric(predictions, batch)`, `model.compute_metric()`, and the same with
    `train_metric`. Batches must carry along the columns that metrics group by (`reserved_columns` of build_batch).
    """
    from penstock.loops.task_metrics import TaskMetrics
    from penstock.pipeline.grouping import group_columns
    from penstock.pipeline.task_metrics import evaluation_metrics, training_metrics

    require_available(run)
    data = run.data_config
    model = build_model_of(
        model_section(run), used_features(run), data.label_fields, data.sample_weight_fields
    )
    model.attach_metrics(
        TaskMetrics(evaluation_metrics(model), group_columns(run, training=False)),
        TaskMetrics(training_metrics(model), group_columns(run, training=True)),
    )
    return model


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
