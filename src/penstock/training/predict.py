"""The prediction loop: scores in input order, beside the columns that were asked to stay."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import torch
from torch import nn

from penstock.config.errors import ConfigError, hint
from penstock.models.model import Model
from penstock.tensors.batch import Batch
from penstock.training.evaluate import evaluation_mode


def predict(
    model: nn.Module, scoring: Model, batches: Iterable[Batch], output_columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """One record batch per batch: reserved columns first, then predictions, rows as they came."""
    for batch in batches:
        # The mode is set around each batch, not around the loop: a generator may be left half-way.
        with evaluation_mode(model):
            found = scoring.predict(batch)
        reserved = batch.reserves.get()
        columns: dict[str, pa.Array[Any]] = {}
        if reserved is not None:
            columns.update(zip(reserved.schema.names, reserved.columns, strict=True))
        for name in found if output_columns is None else output_columns:
            if name in columns:
                raise ConfigError(
                    f"reserved column '{name}' has the name of a prediction; rename it or leave it out"
                )
            columns[name] = as_arrow(found[name])
        yield pa.RecordBatch.from_pydict(columns)


def require_predictions(names: Sequence[str] | None, known: Iterable[str]) -> None:
    """Refuse names that the model does not give, before anything is scored."""
    known = list(known)
    for name in names or ():
        if name not in known:
            raise ConfigError(f"--output_columns: the model gives no '{name}'; {hint(name, known)}")


def as_arrow(values: torch.Tensor) -> "pa.Array[Any]":
    """A column of numbers, or of fixed-size lists for predictions with a width."""
    array = values.detach().to("cpu", torch.float32).numpy()
    flat: pa.Array[Any] = pa.array(array.reshape(-1))
    return flat if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(flat, array.shape[1])
