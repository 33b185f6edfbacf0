"""The command `predict` as a function, and where predictions go."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.config.errors import ConfigError, hint
from penstock.data.memory_plan import share_data_path
from penstock.observe.summary import StageUse, measured_use
from penstock.readers.sections import BadRows
from penstock.readers.table_write import require_free, write_output
from penstock.run.data import build_batch, open_batches, pieces_of, source_of
from penstock.run.requirements import require_for_prediction
from penstock.run.restore import open_scoring
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.runtime.memory import MemoryReport
from penstock.runtime.progress import ProgressLogger
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
        max_rows = data.resolved_eval_batch_size()
        if data.batch_cost_size is not None:
            max_rows = data.max_batch_rows or data.batch_size
        with computing(run) as session:
            model, _, _ = open_scoring(run, checkpoint, session, max_rows)
            pieces = pieces_of(run, table)
            scored = (build_batch(run, piece, reserved_columns).to(model.device) for piece in pieces)
            return pa.Table.from_batches(list(predict_loop(model.module, model.model, scored)))
    options: dict[str, Any] = {"reserved_columns": reserved_columns, "checkpoint": checkpoint}
    if output is not None:
        return predict_files(run, str(table_or_path), str(output), **options)
    with opened(run, str(table_or_path), **options) as (_, _, _, batches):
        return pa.Table.from_batches(list(batches))


def predict_files(run: RunConfig, input_path: str, output_path: str, **options: Any) -> PredictionResult:
    """Score files and write the scores in input order; the output is whole, or not there.

    `options` are those of `opened`.
    """
    started_at = time.perf_counter()
    output = Path(output_path)
    require_free(output, "--predict_output_path")
    with opened(run, input_path, **options) as (checkpoint, session, stages, batches):
        rows = write_output(output, batches, "--predict_output_path")
    if not rows:
        raise ConfigError("--predict_input_path: there are no rows to score")
    seconds = time.perf_counter() - started_at
    return PredictionResult(output, checkpoint, rows, seconds, session.monitor.report, stages())


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
) -> Iterator[tuple[Path, Session, Callable[[], Sequence[StageUse]], Iterator[pa.RecordBatch]]]:
    """The checkpoint, the session, what stages held so far, and the scores as a stream, in input order."""
    require_for_prediction(run)
    data = run.data_config
    # Every row of the input has its score: a row that cannot be used is an error here, whatever training does.
    strict = run.model_copy(update={"data_config": data.model_copy(update={"bad_rows": BadRows.error})})
    source = source_of(
        strict,
        "predict_input_path",
        path=input_path,
        reserved_columns=reserved_columns,
        batch_size=batch_size,
    )
    with computing(run) as session, ExitStack() as stack:
        model, opened_checkpoint, budget = open_scoring(run, checkpoint, session, source.max_batch_rows)
        model_bytes = max(0, session.monitor.sample() - budget.shares["process"].limit_bytes)
        stack.enter_context(session.monitor.stage("predict"))
        known = list(model.model.prediction_names)
        for name in output_columns or ():
            if name not in known:
                raise ConfigError(f"--output_columns: the model gives no '{name}'; {hint(name, known)}")
        share_data_path(budget, {"": source.scanned}, prefetch_bytes=data.prefetch, by_cost=source.by_cost)
        stream = stack.enter_context(open_batches(data, source, budget))
        bar = stack.enter_context(ProgressLogger("predict", "rows", limit, plain=plain))

        def watched() -> Iterator[pa.RecordBatch]:
            """The first rows, and not one more, shown as they go by; past the memory limit they end in an error."""
            left, batches = limit, (batch.to(model.device) for batch in stream)
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

        yield opened_checkpoint.path, session, stages, watched()
