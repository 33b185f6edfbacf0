"""The command `predict` as a function, and where predictions go."""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from penstock.config.errors import ConfigError, hint
from penstock.config.sizes import MIB
from penstock.data.chain import ByRows
from penstock.data.memory_plan import share_data_path
from penstock.observe.summary import StageUse, measured_use
from penstock.readers.sections import BadRows
from penstock.run.data import build_batch, open_batches, source_of
from penstock.run.requirements import require_for_prediction
from penstock.run.restore import open_scoring
from penstock.run.run_config import RunConfig
from penstock.run.session import Session, computing
from penstock.runtime.durable import sync_path
from penstock.runtime.memory import MemoryReport
from penstock.runtime.progress import ProgressLogger
from penstock.training.evaluate import predict as predict_loop

FILE_SUFFIXES = (".parquet", ".csv")
ROWS_PER_PART = 1_000_000
ROWS_PER_GROUP = 131_072
GROUP_BYTES = 16 * MIB


def write_output(path: Path, batches: Iterable[pa.RecordBatch], rows_per_part: int = ROWS_PER_PART) -> int:
    """Write all batches to disk under a temporary name, then rename; gives the number of rows.

    A path without a suffix is a folder of part-NNNNN.parquet in input order, each ended by the batch that fills it.
    """
    require_free(path)
    staging, is_one_file = path.with_name(f".{path.name}.tmp"), path.suffix in FILE_SUFFIXES
    remove(staging)  # what a stopped run left behind
    waiting: list[pa.RecordBatch] = []
    num_rows, part_rows, num_parts, writer = 0, 0, 0, None
    try:
        if not is_one_file:
            staging.mkdir()
        for batch in chain(batches, [None]):
            if batch is not None:
                waiting.append(batch)
                part_rows += batch.num_rows
            ends_part = batch is None or (not is_one_file and part_rows >= rows_per_part)
            # Small row groups cost every reader, large ones cost us memory.
            waiting_rows, waiting_bytes = sum(map(len, waiting)), sum(part.nbytes for part in waiting)
            if waiting and (ends_part or waiting_rows >= ROWS_PER_GROUP or waiting_bytes >= GROUP_BYTES):
                if writer is None:
                    part = staging if is_one_file else staging / f"part-{num_parts:05d}.parquet"
                    writer, num_parts = open_writer(part, path.suffix, waiting[0].schema), num_parts + 1
                writer.write_table(pa.Table.from_batches(waiting))
                num_rows, waiting = num_rows + waiting_rows, []
            if ends_part and writer is not None:
                writer.close()
                sync_path(part)
                writer, part_rows = None, 0
        if num_parts == 0:
            raise ConfigError("--predict_input_path: there are no rows to score")
        sync_path(staging)
        os.replace(staging, path)
    except BaseException:
        if writer is not None:
            with suppress(Exception):  # on a full disk this fails too; the first error is raised
                writer.close()
        remove(staging)
        raise
    sync_path(path.parent)
    return num_rows


def require_free(path: Path) -> None:
    """Refuse to mix new parts with old ones, to replace one kind by the other, and a folder that is not there."""
    is_one_file, problem = path.suffix in FILE_SUFFIXES, None
    if path.is_dir() and is_one_file:
        problem = f"'{path}' is a folder, but ends like one file; choose another name"
    elif path.suffix and not is_one_file and not path.is_dir():
        problem = (
            f"'{path.name}' ends in '{path.suffix}'; end it in .parquet or .csv for one file, "
            "or in neither for a folder of parts"
        )
    elif path.is_dir() and any(path.iterdir()):
        problem = f"'{path}' is not empty; choose another folder"
    elif path.is_file() and is_one_file:
        problem = f"'{path}' exists already; remove it, or choose another name"
    elif path.exists() and not path.is_dir():
        problem = f"'{path}' is a file; name a folder, or one file ending in .parquet or .csv"
    elif not path.parent.is_dir():
        problem = f"there is no folder '{path.parent}'; make it first"
    if problem is not None:
        raise ConfigError(f"--predict_output_path: {problem}")


def open_writer(path: Path, suffix: str, schema: pa.Schema) -> "pq.ParquetWriter | pyarrow.csv.CSVWriter":
    if suffix != ".csv":
        return pq.ParquetWriter(path, schema)
    if nested := [field.name for field in schema if pa.types.is_nested(field.type)]:
        problem = "holds lists, which CSV cannot; write a .parquet file instead"
        raise ConfigError(f"column '{nested[0]}' {problem}")
    return pyarrow.csv.CSVWriter(path, schema)


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


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
        table, size = table_or_path, run.data_config.resolved_eval_batch_size()
        with computing(run) as session:
            model, _, _ = open_scoring(run, checkpoint, session, size)
            pieces = (table.slice(start, size) for start in range(0, max(1, table.num_rows), size))
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
    require_free(output)
    with opened(run, input_path, **options) as (checkpoint, session, stages, batches):
        rows = write_output(output, batches)
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
    batch_size = batch_size or data.resolved_eval_batch_size()
    # Every row of the input has its score: a row that cannot be used is an error here, whatever training does.
    strict = run.model_copy(update={"data_config": data.model_copy(update={"bad_rows": BadRows.error})})
    source = source_of(
        strict,
        "predict_input_path",
        path=input_path,
        with_labels=False,
        reserved_columns=reserved_columns,
        cut=ByRows(batch_size),
    )
    with computing(run) as session, ExitStack() as stack:
        model, opened_checkpoint, budget = open_scoring(run, checkpoint, session, batch_size)
        model_bytes = max(0, session.monitor.sample() - budget.shares["process"].limit_bytes)
        stack.enter_context(session.monitor.stage("predict"))
        known = list(model.model.prediction_names)
        for name in output_columns or ():
            if name not in known:
                raise ConfigError(f"--output_columns: the model gives no '{name}'; {hint(name, known)}")
        share_data_path(budget, {"": source.scanned}, prefetch_bytes=data.prefetch)
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
