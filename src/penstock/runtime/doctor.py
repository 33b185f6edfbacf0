"""`penstock doctor`: what does not fit together here, and the exact command that mends it.

One function per question, from facts to findings; `diagnose` asks them all. Facts can be passed in, so that
every answer is tested without the machine that gives it. torch is never imported into this process.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from penstock.config.sizes import GIB, MIB, format_size
from penstock.runtime.doctor_facts import BF16_CURE, MODULES, Facts, gather_facts

PYTHONS: Final = ((3, 11), (3, 12), (3, 13))
"""The versions that all of the torch stack has wheels for."""
TORCH: Final = "2.13"
"""What Penstock is tested with."""
FITTING: Final = {"2.13": "1.8", "2.14": "1.9"}
"""Releases of torch, and the release of both fbgemm and torchrec that is built for each."""
TORCHMETRICS: Final = "1.0.3"
"""Newer ones break torchrec's own metrics."""

MIN_MEMORY: Final = 1 * GIB
MIN_SHARED_MEMORY: Final = 64 * MIB
MIN_OPEN_FILES: Final = 1024
MIN_DISK: Final = 2 * GIB


@dataclass(frozen=True, slots=True)
class Finding:
    """One answer: what was looked at, what is there, and the command that mends it when it is not right."""

    subject: str
    message: str
    fix: str | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing has to be done."""
        return self.fix is None

    def __str__(self) -> str:
        if self.ok:
            return f"ok    {self.subject}: {self.message}"
        return f"FAIL  {self.subject}: {self.message}\n      fix: {self.fix}"


def diagnose(facts: Facts | None = None) -> list[Finding]:
    """Every finding about `facts`, by default about this Python and this machine."""
    known = gather_facts() if facts is None else facts
    return [finding for check in CHECKS for finding in check(known)]


def check_python(facts: Facts) -> Iterator[Finding]:
    """Is this a Python that the packages are built for?"""
    version = ".".join(map(str, facts.python_version))
    if facts.python_version[:2] in PYTHONS:
        yield Finding("python", version)
    else:
        fix = "rm -rf .venv && make setup PYTHON=python3.11"
        yield Finding("python", f"is {version}; 3.11, 3.12 or 3.13 is needed", fix)


def check_torch_stack(facts: Facts) -> Iterator[Finding]:
    """Are torch, fbgemm and torchrec releases of one family?"""
    torch = facts.versions.get("torch")
    if torch is None:
        yield Finding("torch", "is not installed", _install(facts, _torch_requirement(facts)))
        return
    family = FITTING.get(_release(torch))
    if family is None:
        message = f"is {torch}; fbgemm and torchrec {FITTING[TORCH]} are built for {TORCH}"
        yield Finding("torch", message, _install(facts, _torch_requirement(facts)))
        return
    yield Finding("torch", torch if _release(torch) == TORCH else f"{torch} (tested with {TORCH})")
    for package in ("torchrec", _fbgemm_package(facts)):
        yield _of_family(facts, package, family, torch)


def check_torchmetrics(facts: Facts) -> Iterator[Finding]:
    """Is torchmetrics the one that torchrec works with?"""
    version = facts.versions.get("torchmetrics")
    if version == TORCHMETRICS:
        yield Finding("torchmetrics", version)
    else:
        message = f"is {version}" if version else "is not installed"
        fix = _install(facts, f"torchmetrics=={TORCHMETRICS}")
        yield Finding("torchmetrics", f"{message}; torchrec works with {TORCHMETRICS} only", fix)


def check_fbgemm_build(facts: Facts) -> Iterator[Finding]:
    """Is there one fbgemm, and is it of the same kind (CPU or CUDA) as torch?"""
    right = _fbgemm_package(facts)
    wrong = "fbgemm-gpu" if right == "fbgemm-gpu-cpu" else "fbgemm-gpu-cpu"
    if wrong not in facts.versions:
        return
    kind = "CUDA" if facts.torch_is_cuda else "CPU"
    both = right in facts.versions
    problem = f"is installed beside {right}; they overwrite each other" if both else "is of the other kind"
    family = FITTING.get(_release(facts.versions.get("torch", "")), FITTING[TORCH])
    reinstall = _install(facts, f"{right}=={family}.0", "--force-reinstall")
    fix = f"{facts.python} -m pip uninstall --yes fbgemm-gpu fbgemm-gpu-cpu && {reinstall}"
    yield Finding(wrong, f"{problem}, and torch is a {kind} build, which needs {right}", fix)


def check_imports(facts: Facts) -> Iterator[Finding]:
    """Does everything load?"""
    for module, problem in facts.import_problems.items():
        yield Finding(f"import {module}", problem, "make setup")
    if not facts.import_problems:
        yield Finding("imports", f"all {len(MODULES)} load")


def check_bf16(facts: Facts) -> Iterator[Finding]:
    """Does the processor compute in BF16? Where it does not, nothing is wrong: float32 needs nothing."""
    if "torch" not in facts.versions or "torch" in facts.import_problems:
        return
    if not facts.bf16_problem:
        message = "this processor computes it"
    elif facts.bf16_is_cured:
        message = (
            f"fails on this processor ({facts.bf16_problem}), and does not with the environment variable "
            f"{BF16_CURE}: set it for mixed_precision: BF16"
        )
    else:
        message = f"fails on this processor ({facts.bf16_problem}): leave mixed_precision: BF16 out"
    yield Finding("BF16", message)


def check_memory(facts: Facts) -> Iterator[Finding]:
    """Is there room for torch, torchrec and some data? The two alone take about 370 MB."""
    size = format_size(facts.memory_bytes)
    if facts.memory_bytes >= MIN_MEMORY:
        yield Finding("memory", size)
    else:
        fix = "docker run --memory=4g ..., or a machine with more"
        yield Finding("memory", f"{size}; at least {format_size(MIN_MEMORY)} is needed", fix)


def check_shared_memory(facts: Facts) -> Iterator[Finding]:
    """Can processes hand batches to each other?"""
    size_bytes = facts.shared_memory_bytes
    if size_bytes is None:
        yield Finding("shared memory", "this system has no /dev/shm and needs none")
    elif size_bytes >= MIN_SHARED_MEMORY:
        yield Finding("shared memory", f"/dev/shm has {format_size(size_bytes)}")
    else:
        message = (
            f"/dev/shm has {format_size(size_bytes)}; at least {format_size(MIN_SHARED_MEMORY)} is needed"
        )
        fix = "sudo mount -o remount,size=2G /dev/shm, or in a container: docker run --shm-size=2g ..."
        yield Finding("shared memory", message, fix)


def check_open_files(facts: Facts) -> Iterator[Finding]:
    """May a process hold enough files open?"""
    if facts.open_files >= MIN_OPEN_FILES:
        yield Finding("open files", f"up to {facts.open_files}")
    else:
        message = f"at most {facts.open_files}; {MIN_OPEN_FILES} are needed"
        yield Finding("open files", message, "ulimit -n 65536")


def check_disk(facts: Facts) -> Iterator[Finding]:
    """Is there room for checkpoints and prepared data?"""
    free = format_size(facts.disk_free_bytes)
    if facts.disk_free_bytes >= MIN_DISK:
        yield Finding("disk", f"{free} free in {facts.folder}")
    else:
        message = f"{free} free in {facts.folder}; at least {format_size(MIN_DISK)} is needed"
        fix = f"du -xh --max-depth=2 {facts.folder} | sort -h | tail, and remove what is not needed"
        yield Finding("disk", message, fix)


CHECKS: Final[tuple[Callable[[Facts], Iterator[Finding]], ...]] = (
    check_python,
    check_torch_stack,
    check_torchmetrics,
    check_fbgemm_build,
    check_imports,
    check_bf16,
    check_memory,
    check_shared_memory,
    check_open_files,
    check_disk,
)


def _of_family(facts: Facts, package: str, family: str, torch: str) -> Finding:
    version = facts.versions.get(package)
    fix = _install(facts, f"{package}=={family}.0")
    if version is None:
        return Finding(package, "is not installed", fix)
    if _release(version) != family:
        return Finding(package, f"is {version}; torch {torch} goes with {package} {family}", fix)
    return Finding(package, version)


def _fbgemm_package(facts: Facts) -> str:
    return "fbgemm-gpu" if facts.torch_is_cuda else "fbgemm-gpu-cpu"


def _torch_requirement(facts: Facts) -> str:
    """On Linux the plain name is a CUDA build; the suffix keeps pip from taking it."""
    wants_cuda = facts.torch_is_cuda or "fbgemm-gpu" in facts.versions
    return f"torch=={TORCH}.0" + ("+cpu" if facts.platform == "linux" and not wants_cuda else "")


def _release(version: str) -> str:
    """`2.13` of `2.13.0+cpu`: what has to agree."""
    return ".".join(version.split(".")[:2])


def _install(facts: Facts, requirement: str, *options: str) -> str:
    """Without dependencies: resolving those of torchrec would bring the CUDA build of fbgemm."""
    return " ".join([facts.python, "-m pip install --no-deps", *options, requirement])
