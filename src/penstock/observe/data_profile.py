"""What the columns of the training data hold, by a short look at some rows.

It is taken once in the life of a run, before the model is there to share the memory with, and shown in its report.
Where no look can be taken, that is told, and the run goes on.
"""

import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.config.sizes import MIB, format_size
from penstock.features.build import feature_names
from penstock.observe.inspect_data import column_table, short_type
from penstock.prep.profile import ColumnFacts, DataProfile, choose_few_pieces, is_list, profile_pieces
from penstock.readers.quarantine import Quarantine
from penstock.readers.scan import ScannedFiles, dataset_type_of, scan_files
from penstock.runtime.budget import Share

if TYPE_CHECKING:
    from penstock.run.data import DataSource
    from penstock.run.plan import TrainingPlan
    from penstock.run.run_config import RunConfig

MOST_COLUMNS = 200
MOST_ROWS = 1 << 14
PATIENCE_SECONDS = 0.3
"""After this time no further piece is looked at."""
SKETCH_BYTES = 16 * MIB
"""What looking takes beside the reader."""
_READER_BYTES = 32 * MIB
"""Enough for a look; with more, large row groups would be decoded whole for a few of their rows."""
_MOST_TEXT = 100
_QUARANTINING_READERS = ("CsvDataset", "JsonDataset", "TFRecordDataset")
_logger = logging.getLogger(__name__)


def profile_data(run: "RunConfig", plan: "TrainingPlan", process_bytes: int) -> dict[str, Any]:
    """The columns and what is used for what, ready for JSON; or `problem`, why there is nothing to show."""
    started_at = time.perf_counter()
    try:
        problem = _unfit(run, plan, process_bytes)
        found = {"problem": problem} if problem else _look(run, plan, process_bytes)
    except Exception as error:  # a run that could be trained never fails for a picture of its data
        _logger.debug("the data were not profiled", exc_info=True)
        found = {"problem": f"looking at the data failed: {_cut(str(error), 5 * _MOST_TEXT)}"}
    finally:
        pa.default_memory_pool().release_unused()
    return {**found, "seconds": round(time.perf_counter() - started_at, 3)}


def uses_of(run: "RunConfig", source: "DataSource", grouping: Sequence[str]) -> dict[str, list[str]]:
    """By column what the run does with it, labels and weights first."""
    uses: dict[str, list[str]] = {}
    for column, use in _uses(run, source, grouping):
        if use not in uses.setdefault(column, []):
            uses[column].append(use)
    names = source.scanned.columns.names
    return {column: uses.get(column, []) for column in dict.fromkeys([*uses, *names]) if column in names}


def _uses(run: "RunConfig", source: "DataSource", grouping: Sequence[str]) -> Iterator[tuple[str, str]]:
    parser = source.parser
    yield from ((column, "label") for column in parser.label_fields)
    yield from ((column, "sample weight") for column in parser.sample_weight_fields)
    yield from ((column, "mask of classes") for column in parser.side.masks)
    yield from ((column, f"session {name}") for name, column in parser.side.sessions.items())
    kinds = _kinds_of_features(run)
    for feature in parser.features:
        yield from (
            (column, f"{kinds.get(feature.name, 'feature')} {feature.name}") for column in feature.inputs
        )
    yield from ((column, "grouping of metrics") for column in grouping)
    if source.cost is not None:
        yield from ((column, "cost of a row") for column in source.cost.columns)
    if source.bucketing is not None:
        yield source.bucketing.length.column, "length of a row"


def _kinds_of_features(run: "RunConfig") -> dict[str, str]:
    chosen = [(config, config.chosen("feature")) for config in run.feature_configs]
    return {name: kind[0] for config, kind in chosen if kind is not None for name in feature_names(config)}


def _unfit(run: "RunConfig", plan: "TrainingPlan", process_bytes: int) -> str | None:
    """Why no look is taken."""
    scanned = plan.source.scanned
    if dataset_type_of(run.data_config, scanned.files) == "OdpsDataset":
        return "tables of ODPS are read over the network in sessions of their own, and not for a look"
    if not scanned.num_rows:
        return "there are no rows"
    room_bytes, min_bytes = _room(plan, process_bytes), scanned.min_bytes
    if room_bytes < min_bytes:
        return (
            f"reading them needs {format_size(min_bytes)} and looking {format_size(SKETCH_BYTES)}, but beside the "
            f"process only {format_size(max(0, room_bytes + SKETCH_BYTES))} of memory.limit are free"
        )
    return None


def _room(plan: "TrainingPlan", process_bytes: int) -> int:
    """What a reader may hold now: not more than in training, and less where the process leaves less."""
    free_bytes = plan.budget.limit_bytes - process_bytes - SKETCH_BYTES
    return min(plan.budget.shares["reader"].limit_bytes, free_bytes)


def _look(run: "RunConfig", plan: "TrainingPlan", process_bytes: int) -> dict[str, Any]:
    started_at = time.perf_counter()
    scanned, uses = _harmless_scan(run, plan.source), uses_of(run, plan.source, plan.grouping_columns)
    room_bytes = min(_room(plan, process_bytes), max(scanned.min_bytes, _READER_BYTES))
    profile = profile_pieces(
        scanned,
        Share("the look at the data", room_bytes),
        choose_few_pieces(scanned.blocks, scanned.row_bytes, MOST_ROWS),
        columns=list(uses)[:MOST_COLUMNS],
        enough=lambda: time.perf_counter() - started_at > PATIENCE_SECONDS,
    )
    return as_record(profile, uses)


def _harmless_scan(run: "RunConfig", source: "DataSource") -> ScannedFiles:
    """The scan of the run, or one that writes no bad row aside: only rows that are trained on count as left out."""
    data, files = run.data_config, source.scanned.files
    if source.quarantine is None or dataset_type_of(data, files) not in _QUARANTINING_READERS:
        return source.scanned
    ignored = Quarantine(None, sys.maxsize, [file.path for file in files])
    return scan_files(data, files, replace(source.request, quarantine=ignored))


def as_record(profile: DataProfile, uses: Mapping[str, list[str]]) -> dict[str, Any]:
    """What the look found, for JSON."""
    rows = zip(column_table(profile), profile.columns, strict=True)
    return {
        "rows": profile.num_rows,
        "rows_looked_at": profile.num_seen,
        "columns_used": len(uses),
        "columns": [_column_record(row, facts, uses[facts.name]) for row, facts in rows],
    }


def _column_record(row: Mapping[str, Any], facts: ColumnFacts, uses: list[str]) -> dict[str, Any]:
    """The line of `penstock inspect` with what the column is used for and, of a list, how long it is."""
    kept = {name: _cut(value) if isinstance(value, str) else value for name, value in row.items()}
    lengths = facts.length_range if is_list(facts.type) or pa.types.is_map(facts.type) else None
    shortest, longest = lengths or (None, None)
    del kept["nulls"]
    return {
        **kept,
        "type": short_type(facts.type),
        "used_for": uses,
        "shortest": shortest,
        "longest": longest,
    }


def _cut(text: str, most: int = _MOST_TEXT) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
