"""The command `features`: what reads what, and what becomes of the first rows. It needs no torch."""

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.config.sizes import MIB
from penstock.features import build_features
from penstock.features.feature import Feature
from penstock.features.parser import Parser
from penstock.features.values import Column, DenseColumn, Values
from penstock.observe.inspect import text_table
from penstock.observe.summary import counted
from penstock.readers.columns import ArrowArray
from penstock.readers.files import list_files
from penstock.readers.scan import ReadRequest, ScannedFiles, scan_files
from penstock.run.requirements import require_available
from penstock.run.run_config import RunConfig, used_features
from penstock.runtime.budget import Share

_SHARE_BYTES = 256 * MIB
_MAX_CHARACTERS = 44


def describe_features(run: RunConfig, num_rows: int, width: int | None = None) -> str:
    """The graph of the features that the model uses, and the first rows of the training data, raw and parsed."""
    if not run.feature_configs:
        raise ConfigError.at("feature_configs", "is required by this command: features to look at")
    if not run.train_input_path:
        message = "is required by this command; set it, or give --train_input_path"
        raise ConfigError.at("train_input_path", message)
    require_available(run)
    features = build_features(run.feature_configs, run.data_config, used_features(run) or None)
    files = list_files(run.train_input_path)
    parser = Parser(features, file_paths=tuple(file.path for file in files))
    scanned = scan_files(run.data_config, files, ReadRequest(parser.columns, parser.text_columns))
    table = _first_rows(scanned, num_rows)
    parser.parse(table)  # which names a bad value with its file
    columns: dict[str, Column | Values] = {**parser.graph.columns(table)}
    columns |= dict(
        parser.graph.values(table, [name for name in parser.graph.features if name not in columns])
    )
    by_name = {feature.name: feature for feature in features}
    in_order = [by_name[name] for level in parser.graph.levels for name in level]
    mode = run.data_config.resolved_fg_mode()
    head = f"{counted(len(features), 'feature')} of {counted(len(parser.columns), 'column')}, {mode}"
    values = [row for feature in in_order for row in _value_rows(feature, table, columns)]
    shown = [head, *_drawing(in_order), "", f"first {counted(table.num_rows, 'row')} of {files[0].path}"]
    return "\n".join([*shown, *(text_table(values, width) if values else ())])


def _first_rows(scanned: ScannedFiles, num_rows: int) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    share = Share("the first rows", max(_SHARE_BYTES, scanned.sizes.min_bytes))
    with closing(scanned.decoder(share)) as decoder:
        for block, size in enumerate(scanned.blocks.num_rows):
            missing = num_rows - sum(batch.num_rows for batch in batches)
            if missing <= 0:
                break
            batches += decoder.batches(block, 0, min(int(size), missing))
    return pa.Table.from_batches(batches, scanned.columns if not batches else batches[0].schema)


def _drawing(features: Sequence[Feature]) -> list[str]:
    """Each feature behind the columns and features that it reads, and what becomes of its values."""
    inputs = [[_source_name(source.side, source.name) for source in each.sources] for each in features]
    input_width = max(len(name) for names in inputs for name in names)
    name_width = max(len(each.name) for each in features)
    lines = []
    for feature, names in zip(features, inputs, strict=True):
        for index, name in enumerate(names):
            corner = "─" if len(names) == 1 else "┐" if not index else "┤" if index < len(names) - 1 else "┴"
            line = f"  {name} {'─' * (input_width - len(name) + 1)}{corner}"
            if index == len(names) - 1:
                line += f"─ {feature.name:{name_width}}  {_encoding(feature)}"
            lines.append(line)
    return lines


def _source_name(side: str, name: str) -> str:
    return f"{side}:{name}" if side in ("feature", "const") else name


def _encoding(feature: Feature) -> str:
    parts = ["strings" if feature.encoding is None else feature.encoding.shown]
    if feature.sequence is not None:
        most = f" of at most {feature.sequence.max_steps:,}" if feature.sequence.max_steps else ""
        parts.insert(0, f"sequence{most}")
    if feature.table is not None and feature.table.weighted:
        parts.append("weighted")
    if feature.table is not None:
        parts.append(f"{feature.table.num_rows:,} rows x {feature.table.dim} of {feature.table.name}")
    if feature.is_stub:
        parts.append("only feeds others")
    return ", ".join(parts)


def _value_rows(
    feature: Feature, table: pa.Table, columns: dict[str, Column | Values]
) -> Iterator[dict[str, Any]]:
    raw: list[tuple[str, list[str]]] = []
    for source in feature.sources:
        if source.side == "feature":
            raw.append((source.name, _shown(columns[source.name])))
        elif source.side != "const":
            raw.append((source.name, _raw(table.column(source.name))))
    for row, parsed in enumerate(_shown(columns[feature.name])):
        values = [cells[row] if len(raw) == 1 else f"{name} {cells[row]}" for name, cells in raw]
        yield {
            "feature": "" if row else feature.name,
            "row": row,
            "raw": _cut(", ".join(values)),
            "": "->",
            "parsed": _cut(parsed),
        }


def _raw(column: ArrowArray) -> list[str]:
    """As JSON, with numbers as short as people write them."""

    def short(value: Any) -> Any:
        if isinstance(value, list):
            return [short(item) for item in value]
        if isinstance(value, dict):
            return {str(key): short(item) for key, item in value.items()}
        return float(f"{value:.7g}") if isinstance(value, float) else value

    values = column.to_pylist(maps_as_pydicts="lossy")
    return [json.dumps(short(value), ensure_ascii=False, default=str) for value in values]


def _cut(text: str) -> str:
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 1] + "…"


def _shown(column: Column | Values) -> list[str]:
    """The ids, numbers or strings of each row; of a sequence, with the steps between ';'."""
    if isinstance(column, Values):
        strings = [str(column.items[index]) for index in range(len(column.items))]
        steps = [" ".join(part) for part in _parts(strings, column.lengths)]
    elif isinstance(column, DenseColumn):
        steps = [" ".join(f"{number:.6g}" for number in row) for row in column.values.tolist()]
    else:
        ids = [str(each) for each in column.values.tolist()]
        if column.weights is not None:
            pairs = zip(ids, column.weights.tolist(), strict=True)
            ids = [f"{each}:{weight:.4g}" for each, weight in pairs]
        steps = [" ".join(part) for part in _parts(ids, column.lengths)]
    if column.steps is not None:
        steps = ["; ".join(part) for part in _parts(steps, column.steps)]
    return [step or "none" for step in steps]


def _parts(items: list[str], lengths: Any) -> list[list[str]]:
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).tolist()
    return [items[start:end] for start, end in pairwise(ends)]
