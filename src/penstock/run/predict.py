"""The command `predict` as a function, and where predictions go."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

from penstock.config.errors import ConfigError, hint
from penstock.data.memory_plan import share_data_path
from penstock.features.value_counts import ValueCounts, add_counts
from penstock.observe.summary import StageUse, measured_use
from penstock.readers.sections import BadRows
from penstock.readers.table_write import require_free, write_output
from penstock.run.data import LargestBatch, build_parser, open_batches, parsed_batch, pieces_of, source_of
from penstock.run.feature_meaning import trained_kinds
from penstock.run.requirements import require_for_prediction
from penstock.run.restore import open_scoring
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.run.unknown_values import warn_of_unknown
from penstock.runtime.memory import MemoryReport
from penstock.runtime.progress import ProgressLogger
from penstock.tensors.batch import Batch
from penstock.training.evaluate import predict as predict_loop


@dataclass(frozen=True, slots=True)
class PredictionResult:
    output: Path
    checkpoint: Path
    rows: int
    seconds: float
    memory: MemoryReport
    stages: Sequence[StageUse] = ()
    """What each stage was to hold, and what it held."""
    value_counts: Mapping[str, ValueCounts] = field(default_factory=dict)
    """By feature with a vocabulary or num_buckets: values that the model does not know, and rows without one."""


def predict(
    run: RunConfig,
    table_or_path: pa.Table | pa.RecordBatch | str | Path,
    output: str | Path | None = None,
    *,
    reserved_columns: Sequence[str] = (),
    checkpoint: str | None = None,
) -> pa.Table | PredictionResult:
    """Score an Arrow table, or files, with a checkpoint of the run ('latest', 'best' or a path).

    Without `output` the scores come back as an Arrow table; with it they are written, in bounded memory.
    """
    if isinstance(reserved_columns, str):
        reserved_columns = [reserved_columns]
    if isinstance(table_or_path, pa.RecordBatch):
        table_or_path = pa.Table.from_batches([table_or_path])
    if not isinstance(table_or_path, pa.Table | str | Path):
        raise ConfigError(f"predict: give an Arrow table or a path, not {type(table_or_path).__name__}")
    if isinstance(table_or_path, pa.Table):
        if output is not None:
            raise ConfigError(
                "predict: an output goes with a path; the scores of a table come back as a table"
            )
        require_for_prediction(run)
        table, data = table_or_path, run.data_config
        max_rows, setting = data.resolved_eval_batch_size(), "data_config.eval_batch_size"
        if data.batch_cost_size is not None:
            max_rows, setting = data.max_batch_rows or data.batch_size, "data_config.max_batch_rows"
        row_bytes = -(-table.nbytes // max(1, table.num_rows))
        largest = LargestBatch(min(max_rows, table.num_rows), row_bytes, setting)
        with computing(run) as session:
            model, opened_checkpoint, _ = open_scoring(run, checkpoint, session, largest)
            parser = build_parser(run, with_labels=False, counts_values=True)
            parser = replace(parser, trained_kinds=trained_kinds(opened_checkpoint))
            counts: dict[str, ValueCounts] = {}
            batches = (parsed_batch(parser, piece, reserved_columns) for piece in pieces_of(run, table))
            scored = predict_loop(model.module, model.model, _counted(batches, counts, model.device))
            found = pa.Table.from_batches(list(scored))
        warn_of_unknown(counts)
        return found
    options: dict[str, Any] = {"reserved_columns": reserved_columns, "checkpoint": checkpoint}
    if output is not None:
        return predict_files(run, str(table_or_path), str(output), **options)
    with opened(run, str(table_or_path), **options) as scoring:
        found = pa.Table.from_batches(list(scoring.batches))
    warn_of_unknown(scoring.value_counts)
    return found


def predict_files(run: RunConfig, input_path: str, output_path: str, **options: Any) -> PredictionResult:
    """Score files and write the scores in input order; the output is whole, or not there.

    `options` are those of `opened`.
    """
    started_at = time.perf_counter()
    output = Path(output_path)
    require_free(output, "--predict_output_path")
    with opened(run, input_path, **options) as scoring:
        rows = write_output(output, scoring.batches, "--predict_output_path")
    if not rows:
        raise ConfigError("--predict_input_path: there are no rows to score")
    seconds = time.perf_counter() - started_at
    return PredictionResult(
        output,
        scoring.checkpoint,
        rows,
        seconds,
        scoring.session.monitor.report,
        scoring.stages(),
        scoring.value_counts,
    )


@dataclass(frozen=True, slots=True)
class Scoring:
    checkpoint: Path
    session: Session
    stages: Callable[[], Sequence[StageUse]]
    """What each stage held so far."""
    batches: Iterator[pa.RecordBatch]
    """The scores, in input order."""
    value_counts: dict[str, ValueCounts]
    """Those of the batches that were scored so far."""


def _counted(
    batches: Iterable[Batch], counts: dict[str, ValueCounts], device: torch.device
) -> Iterator[Batch]:
    """The batches on their way to the model; what they count is added up."""
    for batch in batches:
        add_counts(counts, batch.value_counts or {})
        yield batch.to(device)


@contextmanager
def opened(
    run: RunConfig,
    input_path: str,
    *,
    reserved_columns: Sequence[str] = (),
    output_columns: Sequence[str] | None = None,
    batch_size: int | None = None,
    limit: int | None = None,
    checkpoint: str | None = None,
    plain: bool = True,
) -> Iterator[Scoring]:
    """A checkpoint that scores files, and the scores as a stream."""
    require_for_prediction(run)
    data = run.data_config
    # Every row of the input has its score: a row that cannot be used is an error here, whatever training does.
    strict = run.model_copy(update={"data_config": data.model_copy(update={"bad_rows": BadRows.error})})
    with computing(run) as session, ExitStack() as stack:
        source = source_of(
            strict,
            "predict_input_path",
            path=input_path,
            reserved_columns=reserved_columns,
            batch_size=batch_size,
        )
        model, opened_checkpoint, budget = open_scoring(run, checkpoint, session, source.largest_batch)
        model_bytes = max(0, session.monitor.sample() - budget.shares["process"].limit_bytes)
        stack.enter_context(session.monitor.stage("predict"))
        known = list(model.model.prediction_names)
        for name in output_columns or ():
            if name not in known:
                raise ConfigError(f"--output_columns: the model gives no '{name}'; {hint(name, known)}")
        share_data_path(budget, {"": source.scanned}, prefetch_bytes=data.prefetch, by_cost=source.by_cost)
        source, counts = source.expecting(trained_kinds(opened_checkpoint)), dict[str, ValueCounts]()
        stream = stack.enter_context(open_batches(data, source, budget))
        bar = stack.enter_context(ProgressLogger("predict", "rows", limit, plain=plain))

        def watched() -> Iterator[pa.RecordBatch]:
            """The first rows, and not one more, shown as they go by; past the memory limit they end in an error."""
            left, batches = limit, _counted(stream, counts, model.device)
            for batch in predict_loop(model.module, model.model, batches, output_columns):
                given = batch if left is None else batch.slice(0, left)
                yield given
                bar.advance(given.num_rows)
                if session.monitor.must_stop():
                    raise session.limit_exceeded("nothing was written")
                if left is not None:
                    left -= given.num_rows
                    if left == 0:
                        return

        def stages() -> Sequence[StageUse]:
            return measured_use(budget, session.monitor.report, model_bytes)

        yield Scoring(opened_checkpoint.path, session, stages, watched(), counts)
