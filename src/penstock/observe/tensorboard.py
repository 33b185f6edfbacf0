"""TensorBoard files of a run, written without its library."""

import logging
import socket
import struct
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.runtime.crc32c import masked_crc32c
from penstock.training.events import Evaluated, Event, Logged, Step
from penstock.training.sections import TrainConfig

FOLDER = "tensorboard"
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

_logger = logging.getLogger(__name__)


class TensorBoard(ExitStack):
    """Listens to a trainer inside a `with` block and writes its summaries, into files made with their first line."""

    def __init__(
        self,
        folder: Path,
        train: TrainConfig,
        parameters: Callable[[], Mapping[str, torch.Tensor]],
        first_step: int,
    ) -> None:
        """`first_step` is the first step that is still to come; `parameters` gives those of the model by name."""
        super().__init__()
        self._folder, self._parameters, self._first_step = folder, parameters, first_step
        self._kinds = frozenset(train.tensorboard_summaries)
        self._histogram_steps = train.histogram_steps
        self._files: dict[str, BinaryIO] = {}
        warn_of_histograms(train)

    def __call__(self, event: Event) -> None:
        part, scalars = "train", dict[str, float]()
        match event:
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

    def _write(self, part: str, step: int, content: bytes) -> None:
        """Into the file of a part; later files of a folder follow earlier ones in the order of their names."""
        if part not in self._files:
            folder = self._folder / FOLDER / part
            folder.mkdir(parents=True, exist_ok=True)
            seconds, nanoseconds = divmod(time.time_ns(), 10**9)
            name = f"events.out.tfevents.{seconds:010d}.{nanoseconds:09d}.{socket.gethostname()}"
            self._files[part] = self.enter_context((folder / name).open("xb"))
            self._write(part, 0, _field(3, "brain.Event:2"))
            # From the first step of this file on, earlier files do not count.
            self._write(part, self._first_step, _field(7, _field(1, _SESSION_START)))
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
