"""The rows of one batch as a file that a person can read: one JSON object for each row."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from penstock.readers.origin import locate
from penstock.tensors.batch import Batch, Position


def write_rows(path: Path, batch: Batch, predictions: Mapping[str, torch.Tensor]) -> None:
    """Write where each row came from, what the model said about it, its labels, weights and features.

    Numbers that are not finite stand there as "NaN", "Infinity" and "-Infinity".
    """
    columns = {
        "predictions": {name: _numbers(values) for name, values in predictions.items()},
        "labels": {name: _numbers(values) for name, values in batch.labels.items()},
        "weights": {name: _numbers(values) for name, values in batch.sample_weights.items()},
        "features": dict(_features(batch)),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for row in range(batch.num_rows):
            record: dict[str, Any] = _origin(batch.position, row)
            for kind, named in columns.items():
                record[kind] = {name: values[row] for name, values in named.items() if row < len(values)}
            file.write(json.dumps({key: value for key, value in record.items() if value != {}}) + "\n")


def first_bad_row(batch: Batch, predictions: Mapping[str, torch.Tensor]) -> str:
    """Which rows have a prediction that is not finite, for a message; where none has, nothing."""
    bad = torch.zeros(batch.num_rows, dtype=torch.bool)
    for name, values in predictions.items():
        if values.shape[:1] == bad.shape:
            wide = values.to("cpu", torch.float32).reshape(batch.num_rows, -1)
            bad |= ~(torch.isfinite(wide) | _is_masked(name, wide)).all(dim=1)
    count = int(bad.sum())
    if not count:
        return ""
    row = int(bad.nonzero()[0])
    origin = _origin(batch.position, row)
    place = f"row {origin['row']} of {origin['file']}" if origin else f"row {row} of the batch"
    return f"; predictions of {count:,} of them are not finite, the first {place}"


def _is_masked(name: str, values: torch.Tensor) -> torch.Tensor:
    """Which numbers are those of classes that a mask rules out: of several logits, -inf beside finite ones."""
    if not name.startswith("logits") or values.shape[1] < 2:
        return torch.zeros_like(values, dtype=torch.bool)
    return torch.isneginf(values) & torch.isfinite(values).any(dim=1, keepdim=True)


def _origin(position: Position | None, row: int) -> dict[str, Any]:
    if position is None:
        return {}
    file_index, file_row = locate(int(position.row_ids()[row]))
    known = file_index < len(position.file_paths)
    return {"file": position.file_paths[file_index] if known else f"file {file_index}", "row": file_row}


def _features(batch: Batch) -> Iterator[tuple[str, list[Any]]]:
    """Each feature of the data, row by row: numbers of dense ones, lists of ids of sparse ones."""
    for dense in batch.dense_features.values():
        for name, values in dense.to_dict().items():
            yield name, _numbers(values.squeeze(1) if values.shape[1] == 1 else values)
    for sparse in batch.sparse_features.values():
        for name, ids in sparse.to_dict().items():
            lengths = ids.lengths().tolist()
            yield name, [part.tolist() for part in ids.values().cpu().split(lengths)]
    for name, steps in batch.sequence_dense_features.items():
        yield name, [_numbers(part) for part in steps.values().cpu().split(steps.lengths().tolist())]


def _numbers(values: torch.Tensor) -> list[Any]:
    wide: torch.Tensor = values.detach().cpu()
    return [_told(value) for value in (wide.float() if wide.is_floating_point() else wide).tolist()]


def _told(value: Any) -> Any:
    """JSON has no numbers that are not finite."""
    if isinstance(value, list):
        return [_told(inner) for inner in value]
    if value != value:
        return "NaN"
    return {float("inf"): "Infinity", float("-inf"): "-Infinity"}.get(value, value)
