"""The command `vocab`: vocabularies and statistics of a run's features, from its training data; without torch."""

import json
import logging
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from penstock.config.errors import ConfigError, DataError, format_path
from penstock.config.load import apply_edits
from penstock.config.sizes import format_size
from penstock.config.write import dump_yaml
from penstock.features import build_features
from penstock.features.encoding import NumberEncoding
from penstock.features.feature import MEAN
from penstock.features.graph import FeatureGraph
from penstock.features.parser import Parser
from penstock.features.sections import FgMode, NamedFeature, named_features
from penstock.features.sections.types import has_table
from penstock.prep.feature_counts import FeatureCounts, count_features
from penstock.prep.statistics import RANK_ERROR, NumberStatistics, quantile_boundaries
from penstock.readers.files import list_files
from penstock.readers.scan import ReadRequest, scan_files
from penstock.run.run_config import RunConfig
from penstock.runtime.memory import limit_of, tree_bytes

logger = logging.getLogger(__name__)

STATISTICS_NAME = "statistics.json"
NUM_INTERVALS = 32
"""Of numbers that have no boundaries yet."""
_VOCABULARIES = ("hash_bucket_size", "vocab_list", "vocab_dict", "vocab_file")
_MIN_WORK_BYTES = 96 << 20


@dataclass(frozen=True, slots=True)
class VocabularyFacts:
    """What was counted for one table."""

    features: tuple[str, ...]
    file: str
    num_values: int
    """Of all rows."""
    num_distinct: int
    num_kept: int
    """In the vocabulary."""
    coverage: float
    """The part of all values that is in the vocabulary."""
    num_missing: int


@dataclass(frozen=True, slots=True)
class NumberFacts:
    """What was measured of one feature of numbers."""

    num_values: int
    num_missing: int
    mean: float
    deviation: float
    min: float
    max: float
    boundaries: tuple[float, ...]
    """Where intervals of about equally many rows begin."""
    is_exact: bool
    """Whether the boundaries come from all numbers; else from a sample of them."""


@dataclass(frozen=True)
class VocabularyResult:
    """What `build_vocabularies` found and wrote."""

    folder: Path
    num_rows: int
    min_frequency: int
    tables: dict[str, VocabularyFacts] = field(default_factory=dict)
    """By the name of the embedding table, or of the feature that has it alone."""
    numbers: dict[str, NumberFacts] = field(default_factory=dict)
    """By feature."""

    def written_into(self, run: RunConfig) -> RunConfig:
        """The run with what was found in place: vocab_file, boundaries, the figures of normalizers, means."""
        edits: list[tuple[str, Any]] = []
        for named in named_features(run.feature_configs):
            path, section = format_path(named.key), named.section
            table = self.tables.get(_table_name(named))
            if table is not None and named.name in table.features:
                edits.append((f"{path}.vocab_file", table.file))
                if section.asset_dir:
                    edits.append((f"{path}.asset_dir", None))
            if (found := self.numbers.get(named.name)) is not None:
                edits += [(f"{path}.{key}", value) for key, value in _number_edits(section, found)]
        return apply_edits(run, edits)


def _number_edits(section: Any, found: NumberFacts) -> list[tuple[str, Any]]:
    edits: list[tuple[str, Any]] = []
    if section.boundaries and found.boundaries:
        edits.append(("boundaries", list(found.boundaries)))
    if getattr(section, "default_value", None) == MEAN:
        edits.append(("default_value", f"{found.mean:.6g}"))
    method = re.match(r"\s*method\s*=\s*(zscore|minmax)\b", getattr(section, "normalizer", None) or "")
    if method and method[1] == "zscore" and found.deviation > 0:
        figures = f"mean={found.mean:.6g},standard_deviation={found.deviation:.6g}"
        edits.append(("normalizer", f"method=zscore,{figures}"))
    elif method and method[1] == "minmax" and found.max > found.min:
        edits.append(("normalizer", f"method=minmax,min={found.min:.6g},max={found.max:.6g}"))
    return edits


def build_vocabularies(
    run: RunConfig,
    folder: str | Path,
    *,
    min_frequency: int = 2,
    on_start: Callable[[int], None] = lambda num_rows: None,
    on_rows: Callable[[int], None] = lambda num_rows: None,
) -> VocabularyResult:
    """Count the values of a run's features in its training data, inside memory.limit, and write what was found.

    `folder` gets a vocabulary file for every table with a vocabulary or a hash, with the values that occur
    `min_frequency` times at least, the most frequent first, and statistics.json. `on_start` is called with the number
    of rows, `on_rows` with those that are done.
    """
    if min_frequency < 1:
        raise ConfigError(f"min_frequency is {min_frequency}; it must be at least 1")
    if not run.train_input_path:
        raise ConfigError.at(
            "train_input_path", "is required by this command; set it, or give --train_input_path"
        )
    if run.data_config.resolved_fg_mode() is FgMode.FG_NONE:
        problem = "is FG_NONE: columns are encoded already, so that there is nothing to count; FG_NORMAL reads raw ones"
        raise ConfigError.at("data_config.fg_mode", problem)
    features, numbers, tables, weighted = _counted_features(run)
    if not tables and not numbers:
        raise ConfigError.at("feature_configs", "has no feature with a vocabulary, a hash or numbers")
    parser, files = Parser(features), list_files(run.train_input_path)
    scanned = scan_files(run.data_config, files, ReadRequest(parser.columns, parser.text_columns))
    parser.warm(scanned.columns)
    on_start(scanned.num_rows)
    limit_bytes, present_bytes = limit_of(run.memory), tree_bytes()
    memory_bytes = (limit_bytes - present_bytes) * 7 // 8
    if memory_bytes < _MIN_WORK_BYTES:
        needed = format_size(present_bytes + _MIN_WORK_BYTES * 8 // 7)
        raise ConfigError.at("memory.limit", f"is {format_size(limit_bytes)}; counting needs {needed}")
    out = Path(folder)
    out.mkdir(parents=True, exist_ok=True)
    statistics = {name: NumberStatistics() for name in numbers}
    intervals = {name: len(section.boundaries) + 1 or 0 for name, section in numbers.items()}
    with tempfile.TemporaryDirectory(prefix=".counts-", dir=out) as temporary:
        counts = FeatureCounts(Path(temporary), tables, weighted, statistics)
        try:
            count_features(scanned, FeatureGraph(features), counts, memory_bytes, on_rows)
            found = {}
            for table, counter in counts.counters.items():
                users = tuple(name for name, each in tables.items() if each == table)
                vocabulary = counter.vocabulary(min_frequency, memory_bytes // 3)
                if not vocabulary.num_kept:
                    times = f"{min_frequency:,} times" if min_frequency > 1 else "once"
                    raise DataError(
                        f"feature '{users[0]}': none of its {vocabulary.num_distinct:,} values occurs {times}; lower "
                        "--min-frequency, or leave it out"
                    )
                file = out / f"{_file_stem(table)}.txt"
                left_out = vocabulary.write(file)
                if left_out:
                    logger.warning("%s: %s values hold line breaks and were left out", file, f"{left_out:,}")
                found[table] = VocabularyFacts(
                    users,
                    str(file),
                    vocabulary.num_values,
                    vocabulary.num_distinct,
                    vocabulary.num_kept - left_out,
                    vocabulary.num_kept_values / max(1, vocabulary.num_values),
                    counts.num_missing[table],
                )
        finally:
            counts.close()
    measured = {
        name: _number_facts(each, intervals[name] if intervals[name] > 1 else NUM_INTERVALS)
        for name, each in statistics.items()
        if each.num_numbers
    }
    result = VocabularyResult(out, scanned.num_rows, min_frequency, found, measured)
    content = {
        "rows": result.num_rows,
        "min_frequency": min_frequency,
        "vocabularies": {name: asdict(facts) for name, facts in found.items()},
        "numbers": {name: asdict(facts) for name, facts in measured.items()},
        "boundaries_rank_error": RANK_ERROR,
    }
    (out / STATISTICS_NAME).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return result


def _counted_features(run: RunConfig) -> tuple[Any, dict[str, Any], dict[str, str], frozenset[str]]:
    """The features, those of numbers with their sections, the table of those of ids, and which of these are weighted.

    They are built without what is to be found out: vocabularies that are not written yet, figures of normalizers.
    """
    plain = []
    for config in run.feature_configs:
        data = config.model_copy(deep=True)
        for named in named_features([data]):
            _without_figures(named.section)
        plain.append(data)
    features = build_features(plain, run.data_config)
    by_name = {feature.name: feature for feature in features}
    numbers, tables, weighted = {}, {}, set()
    for named in named_features(run.feature_configs):
        section, feature = named.section, by_name[named.name]
        if isinstance(feature.encoding, NumberEncoding):
            numbers[named.name] = section
        elif has_table(section) and any(getattr(section, key, None) for key in _VOCABULARIES):
            tables[named.name] = _table_name(named)
            if getattr(section, "weighted", False):
                weighted.add(named.name)
    return features, numbers, tables, frozenset(weighted)


def _without_figures(section: Any) -> None:
    if any(getattr(section, key, None) for key in _VOCABULARIES):
        section.vocab_list, section.vocab_dict, section.vocab_file = [], {}, None
        section.hash_bucket_size = 1
    if getattr(section, "normalizer", None):
        section.normalizer = None
    if getattr(section, "default_value", None) == MEAN:
        section.default_value = "0"


def _table_name(named: NamedFeature) -> str:
    return getattr(named.section, "embedding_name", None) or named.name


def _file_stem(table: str) -> str:
    return re.sub(r"[^\w.-]", "_", table)


def _number_facts(found: NumberStatistics, num_intervals: int) -> NumberFacts:
    return NumberFacts(
        found.num_numbers,
        found.num_missing,
        found.mean,
        found.deviation,
        found.min_value,
        found.max_value,
        tuple(quantile_boundaries(found.sample, num_intervals)),
        found.is_exact,
    )


def vocabulary_lines(result: VocabularyResult) -> list[str]:
    """What was found, for a person."""
    lines = [f"{result.folder}: {result.num_rows:,} rows"]
    for table, each in result.tables.items():
        name = table if (table,) == each.features else f"{table} ({', '.join(each.features)})"
        lines.append(
            f"  {name}: {each.num_kept:,} of {each.num_distinct:,} values occur {result.min_frequency} times or more, "
            f"{each.coverage:.1%} of all; {each.file}"
        )
    for name, found in result.numbers.items():
        missing = f", {found.num_missing:,} missing" if found.num_missing else ""
        lines.append(
            f"  {name}: mean {found.mean:.4g}, deviation {found.deviation:.4g}, {found.min:.6g} to {found.max:.6g}"
            f"{missing}, {len(found.boundaries) + 1} quantiles"
        )
    if not all(found.is_exact for found in result.numbers.values()):
        lines.append(f"  quantiles come from samples: ranks are right to {RANK_ERROR:.1%} of the rows")
    return lines


def write_run(run: RunConfig, result: VocabularyResult, run_file: Path) -> str:
    """Write the run with what was found beside its file; gives a line about it."""
    path = run_file.with_name(f"{run_file.stem}.vocab.yaml")
    path.write_text(dump_yaml(result.written_into(run)), encoding="utf-8")
    return f"{path}: {run_file.name} with what was found; its comments stay behind there"
