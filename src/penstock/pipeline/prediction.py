"""The command `predict`, as a function."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.config.errors import ConfigError
from penstock.loops.predict import predict as predict_loop
from penstock.loops.predict import require_predictions
from penstock.pipeline.data import find_files, open_source, scoring_batches
from penstock.pipeline.memory_plan import StageShares, share_data_path
from penstock.pipeline.outputs import require_free, write_output
from penstock.pipeline.parts import build_batch, build_parser
from penstock.pipeline.requirements import require_for_prediction
from penstock.pipeline.run_config import RunConfig
from penstock.pipeline.scoring import Scoring, open_scoring
from penstock.pipeline.session import computing, exceeds_limit, limit_exceeded
from penstock.readers.sections import BadRows
from penstock.runtime.memory import MemoryMonitor, MemoryReport
from penstock.runtime.progress import ProgressLogger


@dataclass(frozen=True, slots=True)
class PredictionRequest:
    """What to score, and what to keep of it."""

    input_path: str
    output_path: str = ""
    reserved_columns: Sequence[str] = ()
    output_columns: Sequence[str] | None = None
    batch_size: int | None = None
    limit: int | None = None
    checkpoint: str | None = None


@dataclass(frozen=True, slots=True)
class PredictionResult:
    """What was written where."""

    output: Path
    checkpoint: Path
    rows: int
    seconds: float
    memory: MemoryReport


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
        return predict_table(run, table_or_path, reserved_columns, checkpoint)
    request = PredictionRequest(
        str(table_or_path), str(output or ""), reserved_columns=reserved_columns, checkpoint=checkpoint
    )
    if output is not None:
        return predict_files(run, request)
    with opened(run, request, plain=True) as (_, batches):
        return pa.Table.from_batches(list(batches))


def predict_files(run: RunConfig, request: PredictionRequest, plain: bool = True) -> PredictionResult:
    """Score files and write the scores in input order; the output is whole, or not there."""
    started_at = time.perf_counter()
    output = Path(request.output_path)
    require_free(output)
    with opened(run, request, plain) as (scoring, batches):
        rows = write_output(output, batches)
    seconds = time.perf_counter() - started_at
    return PredictionResult(output, scoring.checkpoint.path, rows, seconds, scoring.monitor.report)


def predict_table(
    run: RunConfig, table: pa.Table, reserved_columns: Sequence[str], checkpoint: str | None
) -> pa.Table:
    """Score a table that is in memory already, in batches of the run's size."""
    require_for_prediction(run)
    batch_size = run.data_config.resolved_eval_batch_size()
    with scoring_session(run, checkpoint, batch_size) as scoring:
        pieces = (table.slice(start, batch_size) for start in range(0, max(1, table.num_rows), batch_size))
        batches = (build_batch(run, piece, reserved_columns) for piece in pieces)
        model = scoring.sharded
        return pa.Table.from_batches(list(predict_loop(model.module, model.model, model.moved(batches))))


@contextmanager
def opened(
    run: RunConfig, request: PredictionRequest, plain: bool
) -> Iterator[tuple[Scoring, Iterator[pa.RecordBatch]]]:
    """The scores of a request as a stream, in input order."""
    require_for_prediction(run)
    data = run.data_config
    batch_size = request.batch_size or data.resolved_eval_batch_size()
    files = find_files(request.input_path, "predict_input_path")
    parser = build_parser(run, [file.path for file in files], with_labels=False)
    # Every row of the input has its score: a row that cannot be used is an error here, whatever training does.
    strict = data.model_copy(update={"bad_rows": BadRows.error})
    source = open_source(strict, files, parser, request.reserved_columns, scoring=True)
    with (
        scoring_session(run, request.checkpoint, batch_size) as scoring,
        scoring.monitor.stage("predict"),
        ExitStack() as stack,
    ):
        model, budget = scoring.sharded, scoring.budget
        require_predictions(request.output_columns, model.model.prediction_names)
        share_data_path(budget, {"": source.survey}, prefetch_bytes=data.prefetch)
        stream = stack.enter_context(scoring_batches(source, StageShares.of(budget), batch_size=batch_size))
        bar = stack.enter_context(ProgressLogger("predict", "rows", request.limit, plain=plain))
        scores = predict_loop(model.module, model.model, model.moved(stream), request.output_columns)
        yield scoring, watched(limited(scores, request.limit), bar, run, scoring.monitor)


@contextmanager
def scoring_session(run: RunConfig, checkpoint: str | None, batch_size: int) -> Iterator[Scoring]:
    """A loaded model, for the length of a `with` block."""
    with computing(run) as monitor:
        yield open_scoring(run, checkpoint, monitor, batch_size)


def limited(batches: Iterable[pa.RecordBatch], limit: int | None) -> Iterator[pa.RecordBatch]:
    """The first rows, and not one more."""
    left = limit
    for batch in batches:
        if left is None:
            yield batch
            continue
        yield batch.slice(0, left)
        left -= min(left, batch.num_rows)
        if left == 0:
            return


def watched(
    batches: Iterable[pa.RecordBatch], bar: ProgressLogger, run: RunConfig, monitor: MemoryMonitor
) -> Iterator[pa.RecordBatch]:
    """The same batches, shown on the bar as they go by; past the memory limit they end in an error."""
    for batch in batches:
        yield batch
        bar.advance(batch.num_rows)
        if exceeds_limit(run, monitor):
            raise limit_exceeded(monitor.report, "nothing was written")
