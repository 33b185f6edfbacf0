"""Who listens to a trainer: the bar with log.jsonl, TensorBoard files written without its library, and the profiler.

`train_config.is_profiling` or `penstock train --profile`: one step is let pass, one warms up, ten are traced into
model_dir/profile, to be opened with chrome://tracing or Perfetto.
"""

import logging
import os
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from torch.profiler import ProfilerActivity

from penstock.config.sizes import format_size
from penstock.observe.summary import folded, number, results
from penstock.runtime.crc32c import masked_crc32c
from penstock.runtime.durable import Journal
from penstock.runtime.memory import MemoryMonitor, process_tree
from penstock.runtime.progress import Fields, ProgressLogger
from penstock.runtime.world import available_cores
from penstock.training.events import Evaluated, Event, Logged, Skipped, Started, Step, TrainingProgress
from penstock.training.sections import TrainConfig
from penstock.training.step import LearningRates
from penstock.training.task_metrics import TaskMetrics

TENSORBOARD_FOLDER = "tensorboard"
NUM_BUCKETS = 30
MAX_VALUES = 1 << 16
"""Of one parameter in a histogram, evenly spaced: a copy of a whole table is not in the plan of memory."""
TAGS = {
    "loss": "loss/total",
    "loss_scale": "loss/scale",
    "rows_per_second": "speed/rows_per_second",
    "steps_per_second": "speed/steps_per_second",
    "waiting_share": "speed/waiting_share",
    "memory_bytes": "memory/process_tree_bytes",
    "device_memory_bytes": "memory/device_bytes",
    "cpu_share": "speed/cpu_share",
    "read_bytes_per_second": "speed/read_bytes_per_second",
}
"""Numbers of the log that are no metrics."""
_SESSION_START = 1
PROFILE_FOLDER = "profile"
WAIT_STEPS, WARM_UP_STEPS, ACTIVE_STEPS = 1, 1, 10
NUM_OPERATORS = 10
STEP_MARK = "ProfilerStep"
"""What the profiler calls a whole step: no operator."""

_logger = logging.getLogger(__name__)


class MachineUse:
    """What the process tree takes of the machine, by the difference to the last time it was asked."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._process, self._clock = psutil.Process(), clock
        self._last = (0.0, 0.0, 0)
        self.since_last()

    def since_last(self) -> dict[str, float]:
        cpu_seconds, read_bytes = 0.0, 0  # of processors; from the disk, past its cache
        for process in process_tree(self._process):
            try:
                times = process.cpu_times()
                cpu_seconds += times.user + times.system
                read_bytes += process.io_counters().read_bytes
            except (psutil.Error, AttributeError, OSError):
                continue  # it has ended, or the system does not say
        (began_at, cpu_before, read_before), self._last = self._last, (self._clock(), cpu_seconds, read_bytes)
        seconds = max(self._last[0] - began_at, 1e-9)
        cpu_share = (cpu_seconds - cpu_before) / (seconds * available_cores())
        # Not below 0: what processes that ended meanwhile had used is gone from the sums.
        found: dict[str, float] = {
            "cpu_share": round(min(max(cpu_share, 0.0), 1.0), 4),
            "read_bytes_per_second": round(max(read_bytes - read_before, 0) / seconds),
        }
        if torch.cuda.is_available():
            found["device_memory_bytes"] = torch.cuda.memory_allocated()
        return found


class RunLog:
    """Listens to a trainer inside a `with` block: shows it on the bar, and writes it into log.jsonl."""

    def __init__(
        self,
        journal: Journal,
        progress: TrainingProgress,
        rates: LearningRates,
        metrics: TaskMetrics,
        monitor: MemoryMonitor,
        *,
        total_steps: int | None = None,
        num_epochs: int | None = None,
        plain: bool = True,
    ) -> None:
        """`total_steps` and `num_epochs` are those on the present data, where their number is known."""
        total = None if total_steps is None else progress.steps_before + total_steps
        epochs = None if num_epochs is None else progress.epochs_before + num_epochs
        self._of_epochs = "" if epochs is None else f"/{epochs:,}"
        self._bar = ProgressLogger(
            "train", "step", total=total, done=progress.step, plain=plain, show_rate=False
        )
        self._journal, self._rates = journal, rates
        self._metrics, self._monitor = metrics, monitor
        self._started_at, self._rows_before = time.perf_counter(), progress.rows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        self._bar.__exit__(*error)

    def __call__(self, event: Event) -> None:
        match event:
            case Step():
                self._bar.advance(fields=lambda: self._fields(event))
            case Logged(progress=progress):
                line: dict[str, Any] = {"step": progress.step, "epoch": progress.epoch, "rows": progress.rows}
                line |= {"learning_rate": dict(event.learning_rates), **event.numbers}
                line |= {"train_metrics": dict(event.train_metrics)} if event.train_metrics else {}
                line |= {"train_remarks": dict(event.remarks)} if event.remarks else {}
                self._journal.write(line)
            case Skipped(loss_scale=None):
                counts = {"skipped_batches": event.num_batches, "num_rows": event.num_rows}
                self._journal.write({"event": "skipped", "step": event.step, **counts})
            case Skipped():
                counts = {"overflowed_batches": event.num_batches, "num_rows": event.num_rows}
                overflow = {"event": "overflow", "step": event.step, **counts}
                self._journal.write({**overflow, "loss_scale": event.loss_scale})
            case Evaluated(is_recalled=False):
                found = event.evaluation
                shown = results(found.metrics, found.losses, found.remarks, "eval_result.jsonl")
                self._bar.note(folded(f"eval: step {event.step:,}, epoch {event.epoch}: {shown}", "", "    "))

    def _fields(self, event: Step) -> Fields:
        """In the order in which they are shown while there is space: of several train metrics, the first before all."""
        progress, seconds = event.progress, time.perf_counter() - self._started_at
        rates = self._rates.values(progress)
        named = [f"{name} {rate:.3g}" if len(rates) > 1 else f"{rate:.3g}" for name, rate in rates.items()]
        values = {**self._metrics.compute(), "loss": event.loss}
        first, *others = [(name, number(value)) for name, value in values.items()]
        epoch = progress.epoch + (
            progress.epoch_steps > 0
        )  # the one that is read, or that has just been read
        return {
            "epoch": f"{epoch:,}{self._of_epochs}",
            **dict([first]),
            "rows/s": f"{(progress.rows - self._rows_before) / seconds:,.0f}",
            "waiting": f"{event.stopwatch.waiting_share():.0%}",
            "memory": format_size(self._monitor.last_bytes),
            **dict(others),
            "lr": ", ".join(named),
        }


# --- TensorBoard ----------------------------------------------------------------------------------------


class TensorBoard:
    """Listens to a trainer inside a `with` block and writes its summaries; those of evaluations have their own file."""

    def __init__(
        self,
        folder: Path,
        train: TrainConfig,
        parameters: Callable[[], Mapping[str, torch.Tensor]],
        first_step: int,
    ) -> None:
        """`first_step` is the first step that is still to come; `parameters` gives those of the model by name."""
        self._folder, self._parameters, self._first_step = folder, parameters, first_step
        self._kinds = frozenset(train.tensorboard_summaries)
        self._histogram_steps = train.histogram_steps
        self._files: dict[str, BinaryIO] = {}
        warn_of_histograms(train)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            file.close()

    def __call__(self, event: Event) -> None:
        part, scalars = "train", dict[str, float]()
        match event:
            case Started():
                self._open(part)  # the run can be seen from here on
                return
            case Step(progress=progress):
                if self._histogram_steps and progress.step % self._histogram_steps == 0:
                    self._histograms(progress.step)
                return
            case Logged(progress=progress):
                step = progress.step
                for name, value in event.values.items():
                    kind = name.partition("/")[0]
                    if kind in self._kinds or kind not in ("loss", "learning_rate"):
                        scalars[name if kind == "learning_rate" else TAGS.get(name, f"metric/{name}")] = value
                if self._kinds & {"gradient_norm", "global_gradient_norm"}:
                    scalars |= self._gradient_norms()
            case Evaluated(is_recalled=False):
                part, step, losses = "eval", event.step, event.evaluation.losses
                scalars = {f"metric/{name}": value for name, value in event.evaluation.metrics.items()}
                if "loss" in self._kinds:
                    scalars |= {f"loss/{name}": value for name, value in losses.items()}
                    scalars["loss/total"] = sum(losses.values())
            case _:
                return
        values = [
            _field(1, _field(1, tag) + _field(2, float(value), single=True))
            for tag, value in scalars.items()
            if np.isfinite(value)
        ]
        if values:
            self._write(part, step, _field(5, b"".join(values)))
            self._files[part].flush()  # for those who look while the run goes on

    def _histograms(self, step: int) -> None:
        for name, parameter in self._parameters().items():
            found = {"parameter": parameter, "gradient": parameter.grad}
            for kind, values in found.items():
                if kind in self._kinds and values is not None:
                    histogram = _field(1, f"{kind}/{name}") + _field(5, _histogram(values))
                    self._write("train", step, _field(5, _field(1, histogram)))

    def _gradient_norms(self) -> dict[str, float]:
        norms = {
            name: float(torch.linalg.vector_norm(parameter.grad))
            for name, parameter in self._parameters().items()
            if parameter.grad is not None
        }
        found = {}
        if "gradient_norm" in self._kinds:
            found = {f"gradient_norm/{name}": norm for name, norm in norms.items()}
        if "global_gradient_norm" in self._kinds:
            found["global_gradient_norm"] = float(np.linalg.norm(list(norms.values())))
        return found

    def _open(self, part: str) -> None:
        """Later files of a folder follow earlier ones in the order of their names."""
        folder = self._folder / TENSORBOARD_FOLDER / part
        folder.mkdir(parents=True, exist_ok=True)
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        name = f"events.out.tfevents.{seconds:010d}.{nanoseconds:09d}.{socket.gethostname()}"
        self._files[part] = (folder / name).open("xb")
        self._write(part, 0, _field(3, "brain.Event:2"))
        # From the first step of this file on, earlier files do not count.
        self._write(part, self._first_step, _field(7, _field(1, _SESSION_START)))

    def _write(self, part: str, step: int, content: bytes) -> None:
        if part not in self._files:
            self._open(part)
        event = _field(1, time.time()) + _field(2, step) + content
        for data in (struct.pack("<Q", len(event)), event):
            checksum = int(masked_crc32c(np.frombuffer(data, np.uint8), 0, len(data)))
            self._files[part].write(data + struct.pack("<I", checksum))


def warn_of_histograms(train: TrainConfig) -> None:
    unseen = [kind for kind in ("parameter", "gradient") if kind in train.tensorboard_summaries]
    if unseen and train.use_tensorboard and not train.histogram_steps:
        _logger.warning(
            "train_config.tensorboard_summaries: %s %s never written; set train_config.histogram_steps",
            " and ".join(unseen),
            "is" if len(unseen) == 1 else "are",
        )


def _histogram(parameter: torch.Tensor) -> bytes:
    """How values are distributed: all, or as many as are enough, evenly spaced; without those that are not finite."""
    flat = parameter.detach().reshape(-1)
    stride = -(-flat.numel() // MAX_VALUES) or 1
    values: NDArray[Any] = flat[::stride].float().cpu().numpy().astype(np.float64)
    known = values[np.isfinite(values)]
    if not len(known):
        known = np.zeros(1)
    counts, edges = np.histogram(known, NUM_BUCKETS)
    facts = (known.min(), known.max(), float(len(known)), known.sum(), known @ known)
    fields = [_field(number, float(fact)) for number, fact in enumerate(facts, start=1)]
    fields += [_field(6, edges[1:].astype("<f8").tobytes()), _field(7, counts.astype("<f8").tobytes())]
    return b"".join(fields)


def _field(number: int, value: str | bytes | float, *, single: bool = False) -> bytes:
    """A field of a protobuf message; its type on the wire follows from that of the value."""
    match value:
        case float():
            kind, data = (5, struct.pack("<f", value)) if single else (1, struct.pack("<d", value))
        case int():
            kind, data = 0, _varint(value)
        case str():
            return _field(number, value.encode())
        case _:
            kind, data = 2, _varint(len(value)) + value
    return _varint(number << 3 | kind) + data


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*digits, value])


# --- Profiler -------------------------------------------------------------------------------------------


class Profiling:
    """Listens to a trainer inside a `with` block and traces its first steps."""

    def __init__(self, folder: Path, on_trace: Callable[[Sequence[dict[str, Any]], Path], None]) -> None:
        """`on_trace` is given the dearest operators and the trace, once, when it is written."""
        self._folder, self._on_trace = folder / PROFILE_FOLDER, on_trace
        on_gpu = [ProfilerActivity.CUDA] if torch.cuda.is_available() else []
        steps = {"wait": WAIT_STEPS, "warmup": WARM_UP_STEPS, "active": ACTIVE_STEPS}
        self._profiler = torch.profiler.profile(
            activities=[ProfilerActivity.CPU, *on_gpu],
            schedule=torch.profiler.schedule(**steps, repeat=1),
            on_trace_ready=self._write,
        )

    def __enter__(self) -> Self:
        # The library behind the profiler marks each trace on stderr below this level; what a user has set stays.
        os.environ.setdefault("KINETO_LOG_LEVEL", "6")
        self._profiler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._profiler.stop()

    def __call__(self, event: Event) -> None:
        if isinstance(event, Step):
            self._profiler.step()

    def _write(self, profiler: Any) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"steps-to-{profiler.step_num}.json.gz"
        profiler.export_chrome_trace(str(path))

        def microseconds(operator: Any) -> float:
            """By itself, without the operators that it calls; on a device where there is one."""
            return float(operator.self_device_time_total or operator.self_cpu_time_total)

        averages = [each for each in profiler.key_averages() if not each.key.startswith(STEP_MARK)]
        total = sum(map(microseconds, averages)) or 1.0
        operators = [
            {
                "operator": each.key,
                "calls": each.count,
                "milliseconds": round(microseconds(each) / 1000, 3),
                "share": round(microseconds(each) / total, 4),
            }
            for each in sorted(averages, key=microseconds, reverse=True)[:NUM_OPERATORS]
        ]
        for each in operators:
            figures = f"{each['share']:4.0%}  {each['milliseconds']:9.1f} ms  {each['calls']:6,} calls"
            _logger.info("profile: %s  %s", figures, each["operator"])
        self._on_trace(operators, path)
