"""TensorBoard files of a run, written without its library."""

import logging
import socket
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from penstock.readers.tfrecord.crc32c import masked_crc32c
from penstock.training.sections import TrainConfig

NUM_BUCKETS = 30
_VARINT, _DOUBLE, _BYTES, _FLOAT = 0, 1, 2, 5
_SESSION_START = 1


class EventFile:
    """One file of a folder; later files of the folder follow earlier ones in the order of their names."""

    def __init__(self, folder: Path, first_step: int = 0) -> None:
        """`first_step` is the first that this file tells of: earlier files count only below it."""
        folder.mkdir(parents=True, exist_ok=True)
        seconds, nanoseconds = divmod(time.time_ns(), 10**9)
        name = f"events.out.tfevents.{seconds:010d}.{nanoseconds:09d}.{socket.gethostname()}"
        self._file = (folder / name).open("xb")
        self._write(_text(3, "brain.Event:2"), 0)
        self._write(_message(7, _integer(1, _SESSION_START)), first_step)

    def scalars(self, values: Mapping[str, float], step: int) -> None:
        """One number under each tag."""
        tagged = [_message(1, _text(1, tag) + _float(2, value)) for tag, value in values.items()]
        self._write(_message(5, b"".join(tagged)), step)

    def histogram(self, tag: str, values: NDArray[Any], step: int) -> None:
        """How values are distributed; those that are not finite are left out."""
        self._write(_message(5, _message(1, _text(1, tag) + _message(5, _histogram(values)))), step)

    def flush(self) -> None:
        """Let readers see what was written."""
        self._file.flush()

    def close(self) -> None:
        """End the file."""
        self._file.close()

    def _write(self, content: bytes, step: int) -> None:
        event = _double(1, time.time()) + _integer(2, step) + content
        length = struct.pack("<Q", len(event))
        self._file.write(b"".join((length, _checksum(length), event, _checksum(event))))


def _histogram(values: NDArray[Any]) -> bytes:
    known = np.asarray(values, np.float64).ravel()
    known = known[np.isfinite(known)]
    if not len(known):
        known = np.zeros(1)
    counts, edges = np.histogram(known, NUM_BUCKETS)
    return b"".join(
        (
            _double(1, known.min()),
            _double(2, known.max()),
            _double(3, len(known)),
            _double(4, known.sum()),
            _double(5, float(known @ known)),
            _bytes(6, edges[1:].astype("<f8").tobytes()),
            _bytes(7, counts.astype("<f8").tobytes()),
        )
    )


def _checksum(data: bytes) -> bytes:
    held = np.frombuffer(data, np.uint8)
    begin = held.ctypes.data
    return struct.pack("<I", int(masked_crc32c(begin, begin + len(data))))


def _varint(value: int) -> bytes:
    digits = bytearray()
    while value > 0x7F:
        digits.append(value & 0x7F | 0x80)
        value >>= 7
    digits.append(value)
    return bytes(digits)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _integer(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _key(field, _DOUBLE) + struct.pack("<d", value)


def _float(field: int, value: float) -> bytes:
    return _key(field, _FLOAT) + struct.pack("<f", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


_message = _bytes
"""A message within a message is its bytes."""


FOLDER = "tensorboard"
MOST_VALUES = 1 << 16
"""Of one parameter in a histogram, evenly spaced: a copy of a whole table is not in the plan of memory."""
HISTOGRAMS = ("parameter", "gradient")
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

_logger = logging.getLogger(__name__)
Parameters = Callable[[], Mapping[str, torch.Tensor]]


class TensorBoard:
    """Writes the summaries of one run. Files are made with the first line in them."""

    def __init__(self, folder: Path, train: TrainConfig, parameters: Parameters, first_step: int) -> None:
        """`first_step` is the first step that is still to come; `parameters` gives those of the model by name."""
        self._folder, self._parameters, self._first_step = folder, parameters, first_step
        self._kinds = frozenset(train.tensorboard_summaries)
        self._histogram_steps = train.histogram_steps
        self._files: dict[str, EventFile] = {}
        warn_of_histograms(train)

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """The numbers of a line of the log; those that are neither loss, rate nor speed are metrics of the training."""
        chosen = {name: value for name, value in numbers.items() if self._wanted(name)}
        scalars = {tag_of(name): value for name, value in chosen.items()}
        self._write("train", step, scalars | self._gradient_norms())

    def after_step(self, step: int) -> None:
        """Histograms, when it is their turn."""
        if not self._histogram_steps or step % self._histogram_steps:
            return
        for name, parameter in self._parameters().items():
            if "parameter" in self._kinds:
                self._file("train").histogram(f"parameter/{name}", sampled(parameter), step)
            if "gradient" in self._kinds and parameter.grad is not None:
                self._file("train").histogram(f"gradient/{name}", sampled(parameter.grad), step)

    def evaluation(self, step: int, losses: Mapping[str, float], metrics: Mapping[str, float]) -> None:
        """Losses, when they are asked for, and metrics of held-out rows."""
        scalars = {f"metric/{name}": value for name, value in metrics.items()}
        if "loss" in self._kinds:
            scalars |= {f"loss/{name}": value for name, value in losses.items()}
            scalars["loss/total"] = sum(losses.values())
        self._write("eval", step, scalars)

    def close(self) -> None:
        """End the files."""
        for file in self._files.values():
            file.close()

    def _wanted(self, name: str) -> bool:
        kind = name.partition("/")[0]
        return kind not in ("loss", "learning_rate") or kind in self._kinds

    def _write(self, part: str, step: int, scalars: Mapping[str, float]) -> None:
        known = {tag: value for tag, value in scalars.items() if np.isfinite(value)}
        if known:
            self._file(part).scalars(known, step)
            self._file(part).flush()

    def _file(self, part: str) -> EventFile:
        if part not in self._files:
            self._files[part] = EventFile(self._folder / FOLDER / part, self._first_step)
        return self._files[part]

    def _gradient_norms(self) -> dict[str, float]:
        if not self._kinds & {"gradient_norm", "global_gradient_norm"}:
            return {}
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


def open_tensorboard(
    folder: Path, train: TrainConfig, parameters: Parameters, first_step: int
) -> TensorBoard | None:
    """The summaries of a run that wants them."""
    return TensorBoard(folder, train, parameters, first_step) if train.use_tensorboard else None


def warn_of_histograms(train: TrainConfig) -> None:
    """Say which summaries are asked for and would never be written."""
    unseen = [kind for kind in HISTOGRAMS if kind in train.tensorboard_summaries]
    if unseen and train.use_tensorboard and not train.histogram_steps:
        _logger.warning(
            "train_config.tensorboard_summaries: %s %s never written; set train_config.histogram_steps",
            " and ".join(unseen),
            "is" if len(unseen) == 1 else "are",
        )


def tag_of(name: str) -> str:
    """Where TensorBoard shows a number of the log."""
    return name if name.startswith("learning_rate/") else TAGS.get(name, f"metric/{name}")


def sampled(values: torch.Tensor) -> NDArray[Any]:
    """Values for a histogram: all of them, or as many as are enough for one, evenly spaced."""
    flat = values.detach().reshape(-1)
    stride = -(-flat.numel() // MOST_VALUES) or 1
    found: NDArray[Any] = flat[::stride].float().cpu().numpy()
    return found
