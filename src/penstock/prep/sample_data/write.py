"""Writes sample data: files of each split, and a summary with what a model can reach on them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.prep.sample_data.block import KINDS, RawKind
from penstock.prep.sample_data.formats import FORMATS
from penstock.prep.sample_data.layout import DEFAULT_SPLITS, FilePlan, plan_files, split_rows
from penstock.prep.sample_data.rows import RowSource
from penstock.prep.sample_data.summary import SampleSummary, SplitSummary
from penstock.prep.sample_data.tally import Tally
from penstock.prep.sample_data.target import whole_directory

_LATER_FORMATS = ("tfrecord",)
_USUAL_FORMAT = "parquet"
_USUAL_FILES = 4
_USUAL_ROW_GROUP_ROWS = 65_536


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
    `on_rows` hears after every row group how many rows it had.

    A raw kind ("game") has a format of its own and is not split; `on_rows` then hears after every file.
    """
    _check_counts(
        num_rows=(num_rows, 1), num_files=(num_files, 1), row_group_rows=(row_group_rows, 1), seed=(seed, 0)
    )
    _check_format(format)
    sample = KINDS.get(kind)(seed)
    if isinstance(sample, RawKind):
        unused = {
            "format": format,
            "row_group_rows": row_group_rows,
            "splits": splits,
            "with_truth": with_truth,
        }
        _refuse_for_raw(kind, unused)
        with whole_directory(out, overwrite=overwrite) as directory:
            written = sample.write(directory, num_rows, num_files, on_rows)
            summary = _summarize_raw(sample, written, kind=kind, seed=seed)
            summary.save(directory)
        return summary
    format, splits = format or _USUAL_FORMAT, DEFAULT_SPLITS if splits is None else splits
    plans = list(plan_files(split_rows(num_rows, splits), num_files or _USUAL_FILES, format))
    with whole_directory(out, overwrite=overwrite) as directory:
        source, group_rows = RowSource(sample), row_group_rows or _USUAL_ROW_GROUP_ROWS
        work = _Work(directory, source, format, group_rows, with_truth, on_rows)
        tallies = {split: work.write(plan for plan in plans if plan.split == split) for split in splits}
        summary = _summarize(plans, tallies, kind=kind, format=format, seed=seed, planted=sample.planted)
        summary.save(directory)
    return summary


@dataclass(frozen=True, slots=True)
class _Work:
    """What all files of one call share."""

    directory: Path
    source: RowSource
    format: str
    row_group_rows: int
    with_truth: bool
    on_rows: Callable[[int], None]

    def write(self, plans: Iterator[FilePlan]) -> Tally:
        """Write the files of one split, and count their labels."""
        tally = Tally()
        write_file = FORMATS.get(self.format)
        for plan in plans:
            path = self.directory / plan.name
            path.parent.mkdir(exist_ok=True)
            write_file(path, self._row_groups(plan, tally))
        return tally

    def _row_groups(self, plan: FilePlan, tally: Tally) -> Iterator[pa.Table]:
        for start in range(plan.start, plan.stop, self.row_group_rows):
            batches = []
            for piece in self.source.pieces(start, min(start + self.row_group_rows, plan.stop)):
                tally.update(piece)
                batches.append(piece.with_truth().rows if self.with_truth else piece.rows)
            table = pa.Table.from_batches(batches)
            yield table
            self.on_rows(table.num_rows)


def _summarize(
    plans: list[FilePlan], tallies: Mapping[str, Tally], *, kind: str, format: str, seed: int, planted: str
) -> SampleSummary:
    total, splits = Tally(), {}
    for split, tally in tallies.items():
        total.merge(tally)
        own_plans = [plan for plan in plans if plan.split == split]
        num_rows = sum(plan.stop - plan.start for plan in own_plans)
        splits[split] = SplitSummary(tuple(plan.name for plan in own_plans), num_rows, tally.summarize())
    num_rows = sum(split.rows for split in splits.values())
    return SampleSummary(kind, format, seed, num_rows, planted, total.summarize(), splits)


def _summarize_raw(sample: RawKind, written: SplitSummary, *, kind: str, seed: int) -> SampleSummary:
    splits = {sample.folder: written}
    return SampleSummary(kind, sample.format, seed, written.rows, sample.planted, written.labels, splits)


def _check_counts(**counts: tuple[int | None, int]) -> None:
    for name, (count, least) in counts.items():
        if count is not None and count < least:
            raise ConfigError(f"{name} is {count}; it must be at least {least}")


def _check_format(format: str | None) -> None:
    if format in _LATER_FORMATS:
        raise ConfigError(f"format '{format}' is not available yet; use one of {', '.join(FORMATS)}")
    if format is not None:
        FORMATS.get(format)


def _refuse_for_raw(kind: str, settings: Mapping[str, object]) -> None:
    for name, value in settings.items():
        if value not in (None, False):
            raise ConfigError(
                f"kind '{kind}' is raw data with a form of its own: {name} means nothing here; leave it out"
            )
