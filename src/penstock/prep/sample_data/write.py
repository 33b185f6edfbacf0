"""Writes sample data: files of each split, and a summary with what a model can reach on them.

Rows are cut in order, so the number of files and row groups never changes what a row holds. The directory is whole or
absent, and nothing but older sample data is replaced.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from penstock.config.errors import ConfigError
from penstock.config.registry import Registry
from penstock.prep.sample_data.blocks import (
    KINDS,
    SUMMARY_NAME,
    AttainableAuc,
    AttainableError,
    Column,
    LabelSummary,
    SampleSummary,
    SplitSummary,
    pieces,
)
from penstock.readers.order import Shard
from penstock.runtime.durable import check_replaceable, whole_folder

DEFAULT_SPLITS: Mapping[str, float] = {"train": 0.9, "test": 0.1}
_USUAL_FILES, _USUAL_ROW_GROUP_ROWS = 4, 65_536
_MULTI_VALUE_SEPARATOR = "\x1d"
# They hardly ever repeat a value: differences are stored instead of a dictionary.
_INCREASING_COLUMNS = ("event_time", "click_time_seq")
_Scores = dict[str, Any]
"""Label -> AttainableAuc or AttainableError."""


def write_sample_data(
    kind: str,
    num_rows: int,
    out: Path,
    *,
    format: str | None = None,
    num_files: int | None = None,
    row_group_rows: int | None = None,
    seed: int = 0,
    splits: Mapping[str, float] | None = None,
    with_truth: bool = False,
    overwrite: bool = False,
    on_rows: Callable[[int], None] = lambda num_rows: None,
) -> SampleSummary:
    """Write rows of a kind ("clicks", "criteo") to out/<split>/part-00000.<format>, ..., and out/sample.json.

    Row i depends on kind and seed alone: not on the number of rows, files or row groups. `num_files` is per split, 4
    unless given; files are Parquet with row groups of 65,536 rows, train and test 9 to 1, unless told otherwise.
    `with_truth` adds the true probabilities as columns; `overwrite` replaces older sample data and nothing else;
    `on_rows` is called after every row group with its number of rows.

    A raw kind ("game") has a format of its own and is not split; `on_rows` is then called after every file.
    """
    counts = {"num_rows": num_rows, "num_files": num_files, "row_group_rows": row_group_rows, "seed": seed}
    for name, count in counts.items():
        min_count = 0 if name == "seed" else 1
        if count is not None and count < min_count:
            raise ConfigError(f"{name} is {count}; it must be at least {min_count}")
    write_file = FORMATS.get(format or "parquet")
    sample = KINDS.get(kind)(seed)
    check_replaceable(out, "sample data", SUMMARY_NAME, overwrite)
    if hasattr(sample, "write"):
        unused = {
            "format": format,
            "row_group_rows": row_group_rows,
            "splits": splits,
            "with_truth": with_truth,
        }
        for name, value in unused.items():
            if value not in (None, False):
                raise ConfigError(
                    f"kind '{kind}' is raw data with a form of its own: {name} means nothing here; leave it out"
                )
        with whole_folder(out) as directory:
            written = sample.write(directory, num_rows, num_files, on_rows)
            summary = SampleSummary(
                *(kind, sample.format, seed, written.rows, sample.planted, written.labels),
                {sample.folder: written},
            )
            summary.save(directory)
        return summary
    format = format or "parquet"
    ranges = split_rows(num_rows, DEFAULT_SPLITS if splits is None else splits)
    # Files and row groups end within blocks: the rest of a block is not made again.
    block, group_rows = lru_cache(maxsize=1)(sample.block), row_group_rows or _USUAL_ROW_GROUP_ROWS
    total: _Scores = {}
    scores: _Scores = {}

    def row_groups(first: int, end: int) -> Iterator[pa.Table]:
        for start in range(first, end, group_rows):
            batches = []
            for piece in pieces(block, start, min(start + group_rows, end)):
                for label, truth in (*piece.probabilities.items(), *piece.expectations.items()):
                    new_score = AttainableAuc if label in piece.probabilities else AttainableError
                    values = piece.rows.column(label).to_numpy()
                    scores.setdefault(label, new_score()).update(truth, values)
                batches.append(piece.with_truth() if with_truth else piece.rows)
            table = pa.Table.from_batches(batches)
            yield table
            on_rows(table.num_rows)

    def summaries(scores: _Scores) -> dict[str, LabelSummary]:
        return {label: score.summarize() for label, score in scores.items()}

    splits_written = {}
    with whole_folder(out) as directory:
        for split, (start, stop) in ranges.items():
            scores.clear()
            names = []
            (directory / split).mkdir()
            split_files = min(num_files or _USUAL_FILES, stop - start)
            for number in range(split_files):
                first, end = Shard(number, split_files).bounds(stop - start)
                names.append(f"{split}/part-{number:05d}.{format}")
                write_file(directory / names[-1], row_groups(start + first, start + end))
            for label, score in scores.items():
                total.setdefault(label, type(score)()).sums += score.sums
            splits_written[split] = SplitSummary(tuple(names), stop - start, summaries(scores))
        summary = SampleSummary(
            kind, format, seed, num_rows, sample.planted, summaries(total), splits_written
        )
        summary.save(directory)
    return summary


def split_rows(num_rows: int, splits: Mapping[str, float]) -> dict[str, tuple[int, int]]:
    """The range of rows of each split, in the order given.

    >>> split_rows(10, {"train": 0.8, "test": 0.2})
    {'train': (0, 8), 'test': (8, 10)}
    """
    if not splits or min(splits.values()) <= 0.0 or abs(sum(splits.values()) - 1.0) > 1e-6:
        raise ConfigError(f"splits are {dict(splits)}; they must be positive fractions that add up to 1")
    total = sum(splits.values())
    ranges, start, share = {}, 0, 0.0
    for name, fraction in splits.items():
        if name in ("", ".", "..") or "/" in name:
            raise ConfigError(f"split '{name}' is not the name of a folder")
        share += fraction
        stop = round(num_rows * share / total)
        if stop == start:
            raise ConfigError(
                f"{num_rows} rows leave split '{name}' ({fraction:g} of them) empty; ask for more rows"
            )
        ranges[name] = (start, stop)
        start = stop
    return ranges


FORMATS: Registry[Callable[[Path, Iterable[pa.Table]], None]] = Registry("format of sample data")
"""Name, also the extension -> writes one file from tables, each a row group where the format has such a thing."""


@FORMATS.register("parquet")
def write_parquet(path: Path, tables: Iterable[pa.Table]) -> None:
    """One row group per table. Words are dictionary-encoded here, but read back as plain strings."""
    tables = iter(tables)
    first = next(tables)
    schema = first.schema
    increasing = {
        f"{name}.list.element" if pa.types.is_list(schema.field(name).type) else name
        for name in _INCREASING_COLUMNS
        if name in schema.names
    }
    repeating = [name for name in schema.names if name not in _INCREASING_COLUMNS]
    with pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=cast(Any, repeating),  # the stubs know only bool
        column_encoding=dict.fromkeys(increasing, "DELTA_BINARY_PACKED") or None,
        store_schema=False,
    ) as writer:
        for table in chain((first,), tables):
            writer.write_table(table, row_group_size=table.num_rows)


@FORMATS.register("csv")
def write_csv(path: Path, tables: Iterable[pa.Table]) -> None:
    """One header line; lists and maps become strings, nulls become empty."""
    flat = (
        pa.table({name: _as_strings(name, table.column(name)) for name in table.column_names})
        for table in tables
    )
    first = next(flat)
    with pyarrow.csv.CSVWriter(path, first.schema) as writer:
        for table in chain((first,), flat):
            writer.write_table(table)


def _as_strings(name: str, column: "pa.ChunkedArray[Any]") -> "pa.ChunkedArray[Any]":
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    if pa.types.is_map(column.type):
        return pa.chunked_array([_join_map(chunk) for chunk in column.chunks], pa.string())
    if pa.types.is_list(column.type):
        separator = ";" if name.endswith("_seq") else _MULTI_VALUE_SEPARATOR
        return cast("pa.ChunkedArray[Any]", pc.binary_join(column.cast(pa.list_(pa.string())), separator))
    return column


def _join_map(maps: Any) -> Column:
    """{"music": 0.5, "art": 1} -> "music:0.5" and "art:1" joined."""
    first, last = maps.offsets[0].as_py(), maps.offsets[-1].as_py()
    keys, items = maps.keys.slice(first, last - first), maps.items.slice(first, last - first)
    entries = pc.binary_join_element_wise(keys, items.cast(pa.string()), ":")
    offsets = pc.subtract(maps.offsets, first)
    return cast(Column, pc.binary_join(pa.ListArray.from_arrays(offsets, entries), _MULTI_VALUE_SEPARATOR))
