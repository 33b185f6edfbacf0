"""How many bytes there are, and what the process tree really takes: sampled in a thread, with the peak of every stage.

Pages that only one process has are added up; of the pages that processes share (libraries, forked memory), those of the
process with the most are counted once. So the number does not depend on who else on the machine has loaded the same
libraries, and a library that is loaded counts in full.

Between two samples the kernel watches: where the high-water mark of this process has grown, that counts, however short
the peak was. Of the processes that it started only samples are known.

Telling shared pages apart means walking all pages of a process. The thread of the monitor asks for plain counts, less
what these were wrong by when pages were last told apart: at the bounds of stages, and near the limit.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import psutil

from penstock.config.sizes import MIB

if TYPE_CHECKING:
    from penstock.runtime.sections import MemorySection

CGROUP_FILES = (
    Path("/sys/fs/cgroup/memory.max"),
    Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"),
)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
CHILDREN_SECONDS = 1.0
"""How long a list of processes holds: making one looks at every thread."""
NEAR_PARTS = 10
"""So near the limit, with one part of so many left, pages are told apart at every sample."""
RELIEF_PARTS = 20
"""So near it, the process gives back what it can."""
_START = "start"


def memory_of_machine(cgroup_files: tuple[Path, ...] = CGROUP_FILES) -> int:
    total = int(psutil.virtual_memory().total)
    for file in cgroup_files:
        with suppress(OSError, ValueError):  # version 2 writes "max" where there is no limit
            total = min(total, int(file.read_text()))
    return total


def memory_limit(given_bytes: int | None, process_bytes: int) -> int:
    """The limit of work on a whole data set: as given, or 512 MiB, or more where loaded libraries take most of it."""
    if given_bytes is not None:
        return given_bytes
    return max(512 * MIB, process_bytes + 384 * MIB)


def default_limit() -> int:
    """The memory limit of a run that does not set one: 60 %, in integers so that it is the same on every machine."""
    return memory_of_machine() * 60 // 100


def limit_of(memory: "MemorySection") -> int:
    return default_limit() if memory.limit is None else memory.limit


def process_tree(root: psutil.Process) -> list[psutil.Process]:
    """The process, what it started, what those started, and so on.

    Linux lists the children of a thread in a file; psutil looks at every process of the machine, which takes long
    where there are thousands and the question comes five times a second.
    """
    pids = [root.pid]
    try:
        for pid in pids:  # grows on the way
            for thread in Path(f"/proc/{pid}/task").iterdir():
                pids += map(int, (thread / "children").read_text().split())
        return [root, *map(psutil.Process, pids[1:])]
    except (OSError, psutil.NoSuchProcess):  # a kernel without such files, or one that ended meanwhile
        return [root, *root.children(recursive=True)]


def process_bytes(process: psutil.Process) -> tuple[int, int]:
    """Private and shared bytes of one process; all count as private where the kernel does not tell them apart."""
    try:
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text().splitlines()
        fields = (line.partition(":") for line in lines[1:])
        sizes = {name: int(rest.split()[0]) * 1024 for name, _, rest in fields}
        shared = sizes["Shared_Clean"] + sizes["Shared_Dirty"]
        return sizes["Rss"] - shared, shared
    except (OSError, KeyError):
        try:
            return int(process.memory_info().rss), 0
        except psutil.NoSuchProcess:
            return 0, 0


def tree_bytes(root: psutil.Process | None = None) -> int:
    return sum(tree_parts(root or psutil.Process()))


def tree_parts(root: psutil.Process, processes: Sequence[psutil.Process] = ()) -> tuple[int, int]:
    """Bytes of a process, and what those that it started add to them."""
    processes = processes or process_tree(root)
    if len(processes) == 1:
        # Nothing to share with: a plain count is enough; telling pages apart takes milliseconds that grow with memory.
        return int(root.memory_info().rss), 0
    return _joined([*map(process_bytes, processes)])


def plain_parts(processes: Sequence[psutil.Process]) -> tuple[int, int]:
    """As `tree_parts`, by counts that the kernel keeps: pages of a forked process count as its own, though shared."""
    counted: list[tuple[int, int]] = []
    for process in processes:
        try:
            _, resident, shared, *_ = map(int, _read(f"/proc/{process.pid}/statm").split())
            counted.append(((resident - shared) * PAGE_BYTES, shared * PAGE_BYTES))
        except (OSError, ValueError):  # no such files here, or it has ended
            counted.append(process_bytes(process))
    return _joined(counted)


def _joined(counted: Sequence[tuple[int, int]]) -> tuple[int, int]:
    private, shared = zip(*counted, strict=True)
    return private[0] + shared[0], sum(private[1:]) + max(shared) - shared[0]


def high_water_bytes() -> int:
    """The peak of this process since it began, as the kernel counts it; 0 where the kernel does not."""
    try:
        _, _, rest = _read("/proc/self/status").partition(b"VmHWM:")
    except OSError:
        return 0
    return int(rest.split(maxsplit=1)[0]) * 1024 if rest else 0


def _read(path: str) -> bytes:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)


@dataclass(slots=True)
class MemoryReport:
    """Peaks of the process tree, in bytes: of the whole run and of each stage."""

    limit_bytes: int
    start_bytes: int = 0
    peak_bytes: int = 0
    peak_stage: str = _START
    started_peak_bytes: int = 0
    """What processes that this one started since added, at most."""
    stage_peaks: dict[str, int] = field(default_factory=dict)
    leased_peaks: dict[str, int] = field(default_factory=dict)
    """By stage: the most that was leased of the budget at once."""


class MemoryMonitor:
    """Samples the process tree after every stage, and every `interval_seconds` (None: not by the clock).

    `stops`: a command is to end once more than the limit was measured. `relieve` is called by the clock near the
    limit, to give back what allocators keep: results that wait between blocks that are used again and again split them.
    """

    def __init__(
        self,
        limit_bytes: int,
        interval_seconds: float | None = 0.2,
        *,
        stops: bool = False,
        relieve: Callable[[], object] = lambda: None,
    ) -> None:
        self.report, self._stops, self._relieve = MemoryReport(limit_bytes), stops, relieve
        self.last_bytes = 0
        self._interval_seconds = interval_seconds
        self._stage = _START
        self._high_water_bytes = high_water_bytes()
        self._started_before_bytes: int | None = None
        self.leased_bytes: Callable[[], int] = lambda: 0
        """What stages hold of their shares at this moment; set when these are known."""
        self._process = psutil.Process()
        self._tree, self._tree_until = [self._process], 0.0
        self._overcounted_bytes = 0
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="penstock-memory", daemon=True)

    def __enter__(self) -> Self:
        self.report.start_bytes = self.sample()
        if self._interval_seconds is not None:
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        if self._interval_seconds is not None:
            self._thread.join()

    def must_stop(self) -> bool:
        return self._stops and self.report.peak_bytes > self.report.limit_bytes

    def sample(self, *, exact: bool = True) -> int:
        """What the process tree takes now; where it is not `exact`, by plain counts unless that is near the limit."""
        with self._lock:
            report, stage = self.report, self._stage  # another stage may begin while this one is measured
            own_bytes, started_bytes = self._parts(exact)
            self.last_bytes = own_bytes + started_bytes
            before, self._high_water_bytes = self._high_water_bytes, high_water_bytes()
            if self._high_water_bytes > before:
                own_bytes = max(own_bytes, self._high_water_bytes)
            peak_bytes, leased_bytes = own_bytes + started_bytes, self.leased_bytes()
            report.stage_peaks[stage] = max(peak_bytes, report.stage_peaks.get(stage, 0))
            report.leased_peaks[stage] = max(leased_bytes, report.leased_peaks.get(stage, 0))
            if peak_bytes > report.peak_bytes:
                report.peak_bytes, report.peak_stage = peak_bytes, stage
            if self._started_before_bytes is None:
                self._started_before_bytes = started_bytes
            new_bytes = started_bytes - self._started_before_bytes
            report.started_peak_bytes = max(report.started_peak_bytes, new_bytes)
            return self.last_bytes

    def _parts(self, exact: bool) -> tuple[int, int]:
        now, limit_bytes = time.monotonic(), self.report.limit_bytes
        if exact or now >= self._tree_until:
            self._tree, self._tree_until = process_tree(self._process), now + CHILDREN_SECONDS
        own_bytes, started_bytes = plain = plain_parts(self._tree)
        is_near = sum(plain) - self._overcounted_bytes >= limit_bytes - limit_bytes // NEAR_PARTS
        if len(self._tree) > 1 and (exact or is_near):
            own_bytes, started_bytes = tree_parts(self._process, self._tree)
            self._overcounted_bytes = sum(plain) - own_bytes - started_bytes
        elif len(self._tree) > 1:
            started_bytes = max(0, started_bytes - self._overcounted_bytes)
        return own_bytes, started_bytes

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Counts what is sampled from here on for the stage `name`, until the next one begins."""
        self.sample()  # the last one of the stage before
        before, self._stage = self._stage, name
        try:
            yield
        finally:
            self.sample()
            self._stage = name if before == _START else before

    def _watch(self) -> None:
        while not self._closed.wait(self._interval_seconds):
            limit_bytes = self.report.limit_bytes
            if self.sample(exact=False) >= limit_bytes - limit_bytes // RELIEF_PARTS:
                self._relieve()


def stage_of(monitor: MemoryMonitor | None, name: str) -> AbstractContextManager[None]:
    return nullcontext() if monitor is None else monitor.stage(name)
