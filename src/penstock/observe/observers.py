"""Who looks at a training run without changing it: TensorBoard, the profiler, the step advisor."""

from collections.abc import Mapping
from contextlib import ExitStack
from types import TracebackType
from typing import Self

import torch

from penstock.observe.advice import Advice, DataPathFacts, advise
from penstock.observe.log import StepLog
from penstock.observe.profiler import Profiling
from penstock.observe.tensorboard import open_tensorboard
from penstock.readers.survey import dataset_type_of
from penstock.run.data import batch_rows
from penstock.run.model_dir import ModelDir
from penstock.run.requirements import train_section
from penstock.run.run_config import RunConfig
from penstock.run.training_parts import Training
from penstock.runtime.memory import MemoryReport
from penstock.runtime.world import available_cores
from penstock.tensors.loader import BatchLoader
from penstock.training.evaluate import Evaluation
from penstock.training.train import Stopwatch


class Observers:
    """All of them, told by the hooks of a run; use it in a `with` block."""

    def __init__(self, run: RunConfig, training: Training, folder: ModelDir, log: StepLog) -> None:
        self._run, self._training = run, training
        self._num_steps, self._stopwatch = 0, Stopwatch()
        train, progress = train_section(run), training.progress
        first_step = progress.step + 1 if progress.step else 0
        self._board = open_tensorboard(folder.path, train, self._parameters, first_step)
        self._profiling: Profiling | None = None
        if train.is_profiling:
            self._profiling = Profiling(
                folder.path,
                lambda operators, path: log.tell(
                    "profile", progress.step, operators=list(operators), trace=path.name
                ),
            )
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if self._board is not None:
            self._open.callback(self._board.close)
        if self._profiling is not None:
            self._open.enter_context(self._profiling)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def after_step(self, step: int, stopwatch: Stopwatch) -> None:
        """A step is done; its gradients are still there."""
        self._num_steps, self._stopwatch = self._num_steps + 1, stopwatch
        if self._profiling is not None:
            self._profiling.step()
        if self._board is not None:
            self._board.after_step(step)

    def after_log(self, step: int, numbers: Mapping[str, float]) -> None:
        """A line of the log is written."""
        if self._board is not None:
            self._board.log(step, numbers)

    def after_evaluation(self, step: int, evaluation: Evaluation) -> None:
        """An evaluation is done."""
        if self._board is not None:
            self._board.evaluation(step, evaluation.losses, evaluation.metrics)

    def advice(self, report: MemoryReport) -> Advice | None:
        """What to change, by what was measured so far."""
        return advise(facts_of(self._run, self._training, self._num_steps, self._stopwatch, report))

    def _parameters(self) -> dict[str, torch.Tensor]:
        return dict(self._training.sharded.module.named_parameters())


def facts_of(
    run: RunConfig, training: Training, num_steps: int, stopwatch: Stopwatch, report: MemoryReport
) -> DataPathFacts:
    """What the advisor has to know."""
    loader, rows = training.batches.source, batch_rows(run.data_config)
    assert isinstance(loader, BatchLoader)
    return DataPathFacts(
        num_steps=num_steps,
        waiting_share=stopwatch.waiting_share(),
        reading_seconds=loader.spent.beside,
        parsing_seconds=loader.spent.function,
        computing_seconds=stopwatch.working,
        batch_rows=rows,
        batch_bytes=rows * training.source.survey.row_bytes,
        num_workers=len(loader.worker_pids),
        num_cores=available_cores(),
        free_bytes=report.limit_bytes - report.peak_bytes,
        share_bytes={name: share.limit_bytes for name, share in training.budget.shares.items()},
        dataset_type=dataset_type_of(run.data_config, training.source.survey.files),
    )
