"""What this process is: its rank and its peers, its cores, its packages, and how it stops and goes on.

The environment is read once, into values that are passed on.
"""

import os
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from types import FrameType
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from penstock.config.errors import ConfigError, PenstockError

DECISIVE_PACKAGES = ("penstock", "torch", "torchrec", "fbgemm-gpu-cpu", "fbgemm-gpu", "pyarrow", "numpy")
"""The packages that decide what a run computes; runs and checkpoints record which they were made with."""

_TILES = {"": None, "0": None, "1": None, "2": "inputs", "3": "embeddings"}

Array = NDArray[Any]
State = dict[str, Any]
"""A position one can come back to: plain numbers, strings, lists and mappings, ready for JSON."""


class Resumable(Protocol):
    """Anything that can stop and go on: what a checkpoint holds."""

    def state_dict(self) -> State:
        """The position after the last thing that was given out."""
        ...

    def load_state_dict(self, state: State) -> None: ...


@dataclass(frozen=True, slots=True)
class World:
    """This process among its peers; one process alone is rank 0 of 1."""

    rank: int = 0
    num_ranks: int = 1
    local_rank: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.rank < self.num_ranks:
            raise ConfigError(
                f"rank {self.rank} does not fit a world of {self.num_ranks}; "
                "RANK must be at least 0 and below WORLD_SIZE (torchrun sets both)"
            )

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        numbers = {}
        for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0)):
            text = environment.get(name, str(default))
            if not text.isdecimal():
                raise ConfigError(f"environment variable {name} is '{text}'; expected a whole number")
            numbers[name] = int(text)
        if numbers["WORLD_SIZE"] > 1 and "MASTER_ADDR" not in environment:
            raise ConfigError(
                "WORLD_SIZE is above 1 but MASTER_ADDR is not set; start the ranks with torchrun"
            )
        return cls(numbers["RANK"], numbers["WORLD_SIZE"], numbers["LOCAL_RANK"])


# How ranks exchange numbers, without saying over what: NumPy in, NumPy out. Metrics, checkpoints and loops receive a
# `Collectives` and never import torch.distributed; `penstock.distributed` implements it over torch.


class Collectives(Protocol):
    """What ranks can do together. Every rank must call, in the same order."""

    def sum(self, array: Array) -> Array:
        """The element-wise sum over ranks, the same on all."""
        ...

    def gather(self, array: Array) -> list[Array]:
        """Every rank's array, in rank order, the same on all; lengths may differ."""
        ...

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        """Send `parts[r]` to rank r; receive one part from each rank, in rank order."""
        ...

    def barrier(self) -> None: ...


class OneProcess:
    def sum(self, array: Array) -> Array:
        return np.array(array, copy=True)

    def gather(self, array: Array) -> list[Array]:
        return [array]

    def all_to_all(self, parts: Sequence[Array]) -> list[Array]:
        (part,) = parts
        return [part]

    def barrier(self) -> None:
        pass


def tile_from_environment(environment: Mapping[str, str] = os.environ) -> str | None:
    """The old way to set `data_config.input_tile`: INPUT_TILE 2 is inputs, 3 is embeddings; None: neither."""
    text = environment.get("INPUT_TILE", "")
    if text not in _TILES:
        raise ConfigError(
            f"environment variable INPUT_TILE is '{text}'; expected 2 (inputs) or 3 (embeddings)"
        )
    return _TILES[text]


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def max_decode_threads() -> int:
    """Threads that may decode at once; past a few, whoever takes the batches is what everything waits for."""
    return min(4, available_cores())


def compute_threads(cores: int | None = None, environment: Mapping[str, str] = os.environ) -> int:
    """Threads of a model's computation: what OMP_NUM_THREADS says, or all cores but one.

    One core is left to the thread that makes batches. Threads of a computation wait for each other in a busy loop,
    so that sharing a core costs more than a core's worth. Measured on two cores with the quickstart: idle, one thread
    was ahead of two by 4 to 20 % (three pairs); beside other work, about sixfold in a step (one pair).
    """
    given = environment.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return max(1, (cores if cores is not None else available_cores()) - 1)


def installed_versions(packages: Sequence[str] = DECISIVE_PACKAGES) -> dict[str, str]:
    """The version of each of these packages; one that is not installed is left out."""
    found = {}
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


# Ctrl-C and SIGTERM: the first asks to finish the step and save, the second stops at once.


class StopRequest:
    signal_number: int | None = None

    def __bool__(self) -> bool:
        return self.signal_number is not None

    @property
    def exit_code(self) -> int:
        """130 after Ctrl-C, 143 after SIGTERM: what shells expect."""
        return 128 + (self.signal_number or 0)


class Stopped(PenstockError):
    def __init__(self, message: str, request: StopRequest) -> None:
        super().__init__(f"stopped: {message}")
        self.exit_code = request.exit_code


@contextmanager
def stop_on_signal(at_once: bool = False) -> Iterator[StopRequest]:
    """Turn the first signal into a request; restore the old handlers on the way out.

    `at_once`: it also raises KeyboardInterrupt, for work that may be left anywhere. Signals reach the main thread only:
    in another one, a request never comes.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def handle(number: int, _: FrameType | None) -> None:
        if request:
            os._exit(128 + number)
        request.signal_number = number
        if at_once:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
