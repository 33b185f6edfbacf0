"""What the data of a run were, and how they were mixed."""

from collections.abc import Iterator, Sequence

from penstock.config.sizes import format_size
from penstock.observe.numbers import counted
from penstock.observe.report.markup import Markup
from penstock.observe.report.run_record import RunRecord
from penstock.observe.report.tables import draw_table


def data_table(runs: Sequence[RunRecord]) -> Markup | None:
    """Facts of the data, one a line, a column for each run."""
    facts = [dict(data_facts(run)) for run in runs]
    names = dict.fromkeys(name for each in facts for name in each)
    rows = [[name, *(each.get(name, "") for each in facts)] for name in names]
    return draw_table(["", *(run.name for run in runs)], rows) if rows else None


def data_facts(run: RunRecord) -> Iterator[tuple[str, str]]:
    """Those that the records hold."""
    yield from amounts(run)
    yield from mixing(run)
    if run.end.get("skipped_batches"):
        yield "batches skipped", f"{run.end['skipped_batches']:,}, since their loss was not finite"
    if run.end.get("overflowed_batches"):
        yield "batches passed over", f"{run.end['overflowed_batches']:,}, with gradients too large for FP16"
    seconds = run.events.get("start", {}).get("seconds_to_first_step")
    if seconds is not None:
        yield "time to the first step", f"{seconds:.1f} s"


def amounts(run: RunRecord) -> Iterator[tuple[str, str]]:
    """How much was read, trained and evaluated on."""
    files = run.version.get("data") or {}
    if files:
        size = format_size(sum(size for size in files.values() if isinstance(size, int)))
        yield "training files", f"{counted(len(files), 'file')}, {size}"
    told = {**run.last, **run.end}
    if "rows" in told:
        yield "rows trained on", f"{told['rows']:,} in {counted(told.get('epoch', 0), 'whole epoch')}"
    if run.evaluations:
        yield "rows evaluated on", f"{run.final_evaluation.get('rows', 0):,}"
    if run.end.get("left_out_rows") is not None:
        yield "rows left out as unusable", f"{run.end['left_out_rows']:,}"


def mixing(run: RunRecord) -> Iterator[tuple[str, str]]:
    """How rows were shuffled, and how well."""
    start, shuffle = run.events.get("start", {}), run.end.get("shuffle") or {}
    if "shuffle_rows" in start:
        rows = start["shuffle_rows"]
        yield "shuffled", f"in windows of {rows:,} rows" if rows else "no"
    if "block_coverage" in shuffle:
        yield "blocks that a batch draws on", f"{shuffle['block_coverage']:.0%} of those of an ideal shuffle"
    if "label_autocorrelation" in shuffle:
        yield "correlation of neighbouring labels", f"{shuffle['label_autocorrelation']:.3f} (0 is ideal)"
